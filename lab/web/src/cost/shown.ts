// Which lines are shown, as the address says.
import { explorer } from "../lib/state.svelte";

function hidden(): string[] {
  return explorer.param("off").split(",").filter((name) => name !== "");
}

export function isShown(name: string): boolean {
  return !hidden().includes(name);
}

export function show(name: string, now: boolean): void {
  const others = hidden().filter((n) => n !== name);
  explorer.setParams({ off: (now ? others : [...others, name]).join(",") }, "push");
}

export function showAllBut(names: string[]): void {
  explorer.setParams({ off: names.join(",") }, "push");
}

/** The member of an ascending list that is nearest to a value, by ratio. */
export function nearestOf(list: number[], value: number): number | undefined {
  const far = (x: number) => Math.abs(Math.log(x / value));
  return list.reduce<number | undefined>((best, x) => (best === undefined || far(x) < far(best) ? x : best), undefined);
}
