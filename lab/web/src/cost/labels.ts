// Where labels stand so that they do not touch.

/** Moves positions until they are `apart`, between low and high, in their order; those for which there is no room are null. */
export function spread(wanted: number[], apart: number, low: number, high: number): (number | null)[] {
  const room = Math.max(0, Math.floor((high - low) / apart) + 1);
  const order = wanted.map((_, i) => i).slice(0, room).sort((a, b) => wanted[a]! - wanted[b]!);
  const found: (number | null)[] = wanted.map(() => null);
  let last = -Infinity;
  const at = order.map((i) => (last = Math.max(wanted[i]!, last + apart, low)));
  let next = Infinity;
  for (let i = at.length - 1; i >= 0; i--) {
    next = at[i] = Math.min(at[i]!, next - apart, high);
  }
  order.forEach((i, place) => (found[i] = at[place]!));
  return found;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function touches(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
