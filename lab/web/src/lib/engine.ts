// Calls of the engine: over HTTP where `volley-lab explore` serves the page, or in a worker
// that runs the same Go code as WebAssembly where the page is static files.
import { inWords } from "./labels";

/** An error of the engine. `field` names the flag at fault; it is "" when none is. */
export class EngineError extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
    this.name = "EngineError";
  }
}

/** Asks the engine, and returns its result. Throws EngineError, or AbortError. */
export async function call<T>(method: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const text = JSON.stringify(body);
  const answer = await (transport() === "wasm" ? work(method, text, signal) : post(method, text, signal));
  signal?.throwIfAborted();
  return resultOf(answer) as T;
}

/** Whether a rejection only says that the caller itself has aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Any rejection as an EngineError. */
export function asEngineError(error: unknown): EngineError {
  return error instanceof EngineError ? error : new EngineError("", error instanceof Error ? error.message : String(error));
}

function transport(): "http" | "wasm" {
  return document.querySelector<HTMLMetaElement>('meta[name="volley-engine"]')?.content === "wasm" ? "wasm" : "http";
}

/** What an answer says. */
function resultOf(json: string): unknown {
  let answer: { result?: unknown; error?: { field: string; message: string } };
  try {
    answer = JSON.parse(json);
  } catch {
    throw new EngineError("", `The engine's answer is not JSON, or broke off: ${json.slice(0, 80)}`);
  }
  if (answer.error) throw new EngineError(answer.error.field, inWords(answer.error.message));
  return answer.result;
}

async function post(method: string, body: string, signal?: AbortSignal): Promise<string> {
  let response: Response;
  try {
    response = await fetch(`api/${method}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      signal,
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new EngineError("", "The engine does not answer. Is volley-lab explore still running?");
  }
  if (!/json/.test(response.headers.get("Content-Type") ?? "")) {
    const text = response.ok ? "" : (await response.text()).trim(); // busy, or another token by now
    throw new EngineError("", text || `The engine answers ${response.status} ${response.statusText} to ${method}.`);
  }
  return response.text();
}

/** What the worker says: the answer to a call, or why there is none. */
export type WorkerMessage = { id: number; answer: string } | { id: number; failure: string };
export type WorkerRequest = { folder: string } | { id: number; method: string; body: string } | { cancel: number };

let worker: Worker | undefined;
let calls = 0;
const pending = new Map<number, (message: WorkerMessage) => void>();

function startWorker(): Worker {
  const w = new Worker(new URL("../wasm-worker.ts", import.meta.url), { type: "module" });
  w.onmessage = (event: MessageEvent<WorkerMessage>) => pending.get(event.data.id)?.(event.data);
  w.onerror = (event) => {
    for (const [id, tell] of pending) tell({ id, failure: event.message || "The engine's worker does not start." });
    worker = undefined;
  };
  w.postMessage({ folder: new URL(".", document.baseURI).href } satisfies WorkerRequest);
  return w;
}

function work(method: string, body: string, signal?: AbortSignal): Promise<string> {
  const w = (worker ??= startWorker());
  const id = ++calls;
  return new Promise((resolve, reject) => {
    const settle = (how: () => void) => {
      pending.delete(id);
      signal?.removeEventListener("abort", abort);
      how();
    };
    const abort = () => {
      w.postMessage({ cancel: id } satisfies WorkerRequest);
      settle(() => reject(signal?.reason));
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort);
    pending.set(id, (message) => {
      settle(() => ("answer" in message ? resolve(message.answer) : reject(new EngineError("", message.failure))));
    });
    w.postMessage({ id, method, body } satisfies WorkerRequest);
  });
}
