import type { Loaded } from "../lib/api";
import { asEngineError, call, EngineError } from "../lib/engine";
import { planStore } from "../lib/plan";
import { problems } from "../lib/problems.svelte";
import { explorer } from "../lib/state.svelte";
import { protectStore } from "../protect/store.svelte";
import { runStore } from "./store.svelte";

/** Loads files and shows them: a plan, the manifest of a group, or what a run has left. */
export async function takeFiles(list: FileList | null): Promise<void> {
  const files = [...(list ?? [])];
  if (files.length === 0) return;
  problems.report("file", null);
  const ofRuns: File[] = [];
  for (const file of files) {
    const format = /"format":\s*"volley-(group|plan|manifest)"/.exec(await file.slice(0, 200).text())?.[1];
    if (!format) ofRuns.push(file);
    else await shown[format]!(file).catch((error) => {
      const { message } = asEngineError(error);
      problems.report("file", new EngineError("", message.startsWith(file.name) ? message : `${file.name}: ${message}`));
    });
  }
  if (ofRuns.length === 0) return;
  const loaded = runStore.load(ofRuns, { ...explorer.request });
  explorer.show("run");
  explorer.setParams({ from: "", to: "" }); // the part of another run
  await loaded;
}

const shown: Record<string, (file: File) => Promise<void>> = { plan: showPlan, group: showGroup, manifest: showCoded };

async function showPlan(file: File): Promise<void> {
  const flags = { ...explorer.request };
  const { beta = "", tau = "", gamma = "", size = "", model = "", network = "" } = flags;
  const { plan } = await call<Loaded>("load", { name: file.name, text: await file.text(), flags: { beta, tau, gamma, size, model, network } });
  explorer.apply({ view: "schedule", params: { round: "0" } });
  planStore.put({ flags }, { ...plan!, command: `from ${file.name}` });
}

async function showGroup(file: File): Promise<void> {
  const { nodes, tolerate, layout } = protectStore.load(file.name, await file.text());
  explorer.apply({ view: "protect", params: { nodes: String(nodes), tolerate: String(tolerate), layout: layout === "full" ? "full" : "" } });
}

/** The manifest of volley encode has the matrix: a plan for it is shown. */
async function showCoded(file: File): Promise<void> {
  const { processors, field, matrix } = JSON.parse(await file.text()) as { processors: number; field: string; matrix: { family: string; inverse: boolean } };
  if (typeof matrix?.family !== "string") throw new EngineError("", "a manifest without a matrix: want what volley encode writes");
  const flags = { processors: String(processors), field: String(field), matrix: matrix.family, inverse: matrix.inverse ? "true" : "" };
  explorer.apply({ view: "schedule", flags, params: { round: "0" } });
}
