// Bytes of small packets for the sums that messages carry.
import type { Flags, Mixture, Plan, Slot } from "../lib/api";
import { Asked } from "../lib/asked.svelte";
import { words } from "../story/model";

interface Sums {
  flags: Flags;
  sums: { name: string; terms: { coef: string; name: string; word: string }[] }[];
}

export const sums = new Asked<Sums, Mixture[]>("sums", [], false);
/** The elements that the last question was about. */
let asked: Slot[] = $state.raw([]);

const more = ["FOAM", "GULL", "KELP", "SURF", "DUNE", "CRAB", "SHIP", "SAIL", "WIND", "RAIN", "PIER", "BUOY"];
const mostTerms = 256;

/** A packet, or a piece of one, of few bytes: a word, or its name where there are too many; a number over fields other than 2^8. */
function wordOf({ info, detail }: Plan, row: number): string {
  const names = detail!.row_names;
  if (info.field !== "2^8") return String(((7 * row + 3) % (Number(info.q) - 1)) + 1);
  const all = [...words, ...more];
  return names.length <= all.length ? all[row]! : names[row]!.padEnd(Math.max(...names.map((n) => n.length)), ".");
}

/** Asks for the sums of elements, as many as are few enough terms. What is zero has none. */
export function ask(plan: Plan, elements: Slot[]): void {
  let left = mostTerms;
  const few = elements.filter((e) => e.rows.length > 0 && (left -= e.rows.length) >= 0);
  asked = few;
  sums.ask({
    flags: { field: plan.info.field },
    sums: few.map(({ label, rows, coefs }) => ({
      name: label,
      terms: rows.map((row, i) => ({ coef: coefs[i]!, name: plan.detail!.row_names[row]!, word: wordOf(plan, row) })),
    })),
  });
}

/** The sum of an element, if it is worked out. */
export function sumOf(element: Slot): Mixture | undefined {
  return sums.busy ? undefined : sums.result?.[asked.indexOf(element)];
}
