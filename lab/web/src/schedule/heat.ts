// What heat maps show, and in which of their colours.

/** Cells by round and processor; the engine has them by processor and round. */
export function sentCells(sent: number[][]): number[][] {
  return (sent[0] ?? []).map((_, round) => sent.map((list) => list[round]!));
}

/** So many colours of five as far apart as they can be. */
const spread = [[], [3], [2, 4], [1, 3, 5], [1, 2, 4, 5], [1, 2, 3, 4, 5]];

/** A scale has a colour for each of up to five values; of more values, for five ranges of which each ends as much higher. */
export interface Scale {
  step(value: number): number;
  /** What the steps stand for, from the least. */
  names: { step: number; upTo: number; range: boolean }[];
}

export function scaleOf(cells: number[][]): Scale {
  const values = [...new Set(cells.flat())].filter((v) => v > 0).sort((a, b) => a - b);
  const range = values.length > 5;
  const [least, most] = [values[0] ?? 1, values.at(-1) ?? 1];
  const ends = range ? [1, 2, 3, 4, 5].map((i) => (i === 5 ? most : Math.round(least * (most / least) ** (i / 5)))) : values;
  const colours = spread[ends.length]!;
  return {
    step: (value) => (value <= 0 ? 0 : (colours[ends.findIndex((end) => value <= end)] ?? 5)),
    names: ends.map((upTo, i) => ({ step: colours[i]!, upTo, range })),
  };
}
