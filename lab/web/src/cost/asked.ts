import type { CostTable, Flags, Sizes } from "../lib/api";
import { Asked } from "../lib/asked.svelte";

export const costs = new Asked<{ flags: Flags; processors: string; only: string }, CostTable>("cost", ["processors"]);
export const sizes = new Asked<{ flags: Flags; from: string; to: string }, Sizes>("sizes", ["from", "to"]);
