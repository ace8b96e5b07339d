// What people come to see, one click each.
import type { Flags } from "./api";
import type { Params, View } from "./state.svelte";

export const presets: { name: string; view: View; flags: Flags; params: Params }[] = [
  { name: "Protect 16 nodes", view: "protect", flags: {}, params: { nodes: "16", tolerate: "2" } },
  { name: "Reed–Solomon 64", view: "schedule", flags: { processors: "64", matrix: "rs:cauchy", algorithm: "universal" }, params: { round: "0" } },
  { name: "DFT", view: "schedule", flags: { processors: "16", field: "17", matrix: "dft", order: "any" }, params: { round: "0" } },
  { name: "The paper's example", view: "schedule", flags: { processors: "27", ports: "2", algorithm: "prepare-and-shoot", matrix: "random:1" }, params: { follow: "0", tree: "spread", round: "0" } },
];
