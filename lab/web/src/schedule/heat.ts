// What heat maps show, and in which of their colours.

/** Cells by round and processor; the engine has them by processor and round. */
export function sentCells(sent: number[][]): number[][] {
  return (sent[0] ?? []).map((_, round) => sent.map((list) => list[round]!));
}

/** Which of the six steps of the scale a value has; 0 is for nothing. */
export function step(value: number, most: number): number {
  if (value <= 0) return 0;
  if (most <= 5) return Math.min(5, Math.ceil(value));
  return Math.min(5, 1 + Math.floor((4.999 * Math.log(value)) / Math.log(most)));
}

/** What the steps stand for, as "3–7". */
export function stepNames(most: number): { step: number; text: string }[] {
  const names = new Map<number, [number, number]>();
  for (let value = 0; value <= most; value = value < 64 ? value + 1 : Math.max(value + 1, Math.floor(value * 1.01))) {
    const s = step(value, most);
    names.set(s, [names.get(s)?.[0] ?? value, value]);
  }
  const last = [...names.keys()].at(-1);
  if (last !== undefined) names.get(last)![1] = most;
  return [...names].map(([s, [a, b]]) => ({ step: s, text: a === b ? String(a) : `${a}–${b}` }));
}
