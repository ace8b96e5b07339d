import { asEngineError, EngineError } from "../lib/engine";
import { own } from "../lib/own.svelte";
import { problems } from "../lib/problems.svelte";
import { explorer } from "../lib/state.svelte";
import { protectStore } from "../protect/store.svelte";

/** Loads files and shows them: a plan, or the manifest of a group or of volley encode. */
export async function takeFiles(list: FileList | null): Promise<void> {
  const files = [...(list ?? [])];
  if (files.length === 0) return;
  problems.report("file", null);
  for (const file of files) {
    const format = /"format":\s*"volley-(group|plan|manifest)"/.exec(await file.slice(0, 200).text())?.[1] ?? "plan";
    await shown[format]!(file).catch((error) => {
      const { message } = asEngineError(error);
      problems.report("file", new EngineError("", message.startsWith(file.name) ? message : `${file.name}: ${message}`));
    });
  }
}

const shown: Record<string, (file: File) => Promise<void>> = { plan: showPlan, group: showGroup, manifest: showPlan };

/** A plan, or the manifest of volley encode, for whose matrix a plan is made. */
async function showPlan(file: File): Promise<void> {
  const text = await file.text();
  const plan = await own.load({ name: file.name, text }, "");
  explorer.apply({ view: "schedule", params: { round: "0" } });
  own.show({ name: file.name, text }, "", plan);
}

async function showGroup(file: File): Promise<void> {
  const { nodes, tolerate } = protectStore.load(file.name, await file.text());
  explorer.apply({ view: "protect", params: { nodes: String(nodes), tolerate: String(tolerate) } });
}
