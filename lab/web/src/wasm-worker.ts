// The engine as WebAssembly. The page's folder has wasm_exec.js, which is Go's, and
// volley.wasm, which sets the global function volleyCall.
import type { WorkerMessage, WorkerRequest } from "./lib/engine";

interface GoRuntime {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

const scope = globalThis as unknown as {
  Go: new () => GoRuntime;
  volleyCall?: (method: string, body: string) => { done: Promise<string>; cancel: () => void };
  postMessage(message: WorkerMessage): void;
  onmessage: ((event: MessageEvent<WorkerRequest>) => void) | null;
};

let engine: Promise<void> | undefined;
/** How calls that go on are ended. */
const cancels = new Map<number, () => void>();

async function start(folder: string): Promise<void> {
  await import(/* @vite-ignore */ `${folder}wasm_exec.js`);
  const response = await fetch(`${folder}volley.wasm`);
  if (!response.ok) throw new Error(`volley.wasm: ${response.status} ${response.statusText}`);
  const go = new scope.Go();
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), go.importObject);
  void go.run(instance); // it ends with the worker
  while (!scope.volleyCall) await new Promise((resolve) => setTimeout(resolve, 5));
}

scope.onmessage = async ({ data }) => {
  if ("folder" in data) {
    engine = start(data.folder);
    engine.catch(() => {}); // the first call reports it
    return;
  }
  if ("cancel" in data) {
    cancels.get(data.cancel)?.();
    return;
  }
  const { id, method, body } = data;
  try {
    await engine;
    const call = scope.volleyCall!(method, body);
    cancels.set(id, call.cancel);
    scope.postMessage({ id, answer: await call.done });
  } catch (error) {
    scope.postMessage({ id, failure: `The engine fails: ${error instanceof Error ? error.message : error}` });
  } finally {
    cancels.delete(id);
  }
};
