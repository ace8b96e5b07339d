// What the story shows of the engine's answers.
import type { CostTable, Detail, Flags, Mix, Plan } from "../lib/api";
import { Asked } from "../lib/asked.svelte";

/** The packets of the machines, a word each. Schedule and Protect have the same code for as many. */
export const words = ["WAVE", "TIDE", "REEF", "SAND"];
/** How many machines there are where packets are counted. */
export const many = 16;
/** The sizes for which a matrix with structure is compared, over the field 257. */
export const sizes = [16, 64, 256];

interface Words {
  flags: Flags;
  words: string[];
  lost: number[];
}
interface Costs {
  flags: Flags;
  processors: string;
  only: string;
}

/** The questions of the screens. */
export const asked = {
  one: new Asked<Words, Mix>("mix"),
  any: new Asked<Words, Mix>("mix"),
  central: new Asked<{ flags: Flags }, Plan>("plan"),
  all: new Asked<{ flags: Flags }, Plan>("plan"),
  grid: new Asked<{ flags: Flags }, Plan>("plan"),
  windows: new Asked<Costs, CostTable>("cost"),
  structure: new Asked<Costs, CostTable>("cost"),
};

/** The universal algorithm with windows of m packets, as --algorithm has it. */
export function withWindow(m: number): string {
  return `universal:${m},${Math.ceil(many / m)}`;
}

/** How many packets have passed each machine one after the other: it sends and receives at the same time, on all ports. */
export function moved({ info, messages: all }: Plan, rounds: number): number[] {
  const count = Array<number>(info.processors).fill(0);
  for (const messages of all.slice(0, rounds)) {
    const longest = count.map(() => 0);
    for (const { src, dst, slots } of messages) for (const k of [src, dst]) longest[k] = Math.max(longest[k]!, slots.length);
    for (const [k, n] of longest.entries()) count[k]! += n;
  }
  return count;
}

/** The machines that get the packet x_row itself, and those that add to y_column and to nothing else. */
export function meeting(detail: Detail, row: number, column: number): { row: number[]; column: number[] } {
  const those = (has: (slot: Detail["memory"][0][0]) => boolean) => detail.memory.flatMap((slots, k) => (slots.some(has) ? [k] : []));
  return {
    row: those((s) => s.kind !== "computed" && s.label === detail.row_names[row]),
    column: those((s) => s.kind === "computed" && s.columns.length === 1 && s.columns[0] === column),
  };
}
