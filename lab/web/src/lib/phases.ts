/** The name of the phase of every round. */
export function phaseOf(phases: { name: string; rounds: number }[]): string[] {
  return phases.flatMap((p) => Array<string>(p.rounds).fill(p.name));
}
