import { explorer } from "../lib/state.svelte";
import { runStore } from "./store.svelte";

/** Loads files and shows them. */
export function takeFiles(files: FileList | null): void {
  if (!files || files.length === 0) return;
  explorer.show("run");
  explorer.setParams({ from: "", to: "" }); // the part of another run
  void runStore.load([...files], { ...explorer.request });
}
