// Ports are told apart by colour and by dashes.
const colours = 8;
const patterns = ["", "7 3", "2 2.5", "9 3 2 3", "4 3", "12 3", "2 4", "9 3 2 3 2 3"];

export function portColour(port: number): string {
  return `var(--port-${port % colours})`;
}

export function dashes(port: number): string | undefined {
  return patterns[port % patterns.length] || undefined;
}
