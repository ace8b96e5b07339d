// What the story shows of the engine's answers.
import type { CostTable, Detail, Flags, Mix, Mixture, Plan, Product } from "../lib/api";
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
  mix: new Asked<Words, Mix>("mix"),
  central: new Asked<{ flags: Flags }, Plan>("plan"),
  all: new Asked<{ flags: Flags }, Plan>("plan"),
  grid: new Asked<{ flags: Flags }, Plan>("plan"),
  windows: new Asked<Costs, CostTable>("cost"),
  bound: new Asked<Costs, CostTable>("cost"),
  butterfly: new Asked<{ flags: Flags }, Plan>("plan"),
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

/** The bytes of a mixture after some of its products are taken from it: what is left is a sum of the others. */
export function without(sum: Mixture, products: Product[]): string {
  const left = products.reduce((bytes, t) => bytes ^ BigInt(`0x${t.bytes}`), BigInt(`0x${sum.bytes}`));
  return left.toString(16).padStart(sum.bytes.length, "0");
}

/** The word of which a machine keeps a copy where machines keep copies. */
export function copied(machine: number): number {
  return (machine + 1) % words.length;
}

/** The words that copies do not bring back: these machines are dead, and those with the copies. */
export function beyondCopies(dead: number[]): number[] {
  return dead.filter((k) => words.every((_, machine) => copied(machine) !== k || dead.includes(machine)));
}

/** All pairs of machines. */
export const allPairs = words.flatMap((_, a) => words.map((_, b) => [a, b]).filter(([, b]) => a < b!));
