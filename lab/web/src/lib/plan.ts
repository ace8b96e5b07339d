// The plan of the flags in the address, for all views.
import type { Flags, Plan } from "./api";
import { Asked } from "./asked.svelte";

export const planStore = new Asked<{ flags: Flags }, Plan>("plan");
