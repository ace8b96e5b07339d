// Calls of the engine: over HTTP where `volley explore` serves the page, or in a worker
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

type OnEvent = (event: unknown) => void;

/** Asks the engine, passes on its events, and returns its result. Throws EngineError, or AbortError. */
export async function call<T>(
  method: string,
  body: unknown,
  onEvent?: (event: any) => void,
  signal?: AbortSignal,
): Promise<T> {
  const answer = new Answer(onEvent);
  const text = JSON.stringify(body);
  await (transport() === "wasm" ? work(method, text, answer, signal) : post(method, text, answer, signal));
  signal?.throwIfAborted();
  return answer.result() as T;
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

/** An answer collects the lines of one call. */
class Answer {
  private found: unknown;
  private error: EngineError | undefined;
  private ended = false;

  constructor(private readonly onEvent: OnEvent | undefined) {}

  line(json: string): void {
    if (json === "") return;
    let line: { event?: unknown; result?: unknown; error?: { field: string; message: string } };
    try {
      line = JSON.parse(json);
    } catch {
      throw new EngineError("", `The engine's answer is not JSON: ${json.slice(0, 80)}`);
    }
    if (line.event !== undefined) {
      this.onEvent?.(line.event);
      return;
    }
    this.ended = true;
    if (line.error) this.error = new EngineError(line.error.field, inWords(line.error.message));
    else this.found = line.result;
  }

  result(): unknown {
    if (this.error) throw this.error;
    if (!this.ended) throw new EngineError("", "The engine's answer broke off.");
    return this.found;
  }
}

async function post(method: string, body: string, answer: Answer, signal?: AbortSignal): Promise<void> {
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
    throw new EngineError("", "The engine does not answer. Is volley explore still running?");
  }
  if (!response.body || !/json/.test(response.headers.get("Content-Type") ?? "")) {
    const text = response.ok ? "" : (await response.text()).trim(); // busy, or another token by now
    throw new EngineError("", text || `The engine answers ${response.status} ${response.statusText} to ${method}.`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) answer.line(line);
  }
  answer.line(rest);
}

/** What the worker says: a line of the answer to a call, or that there is no more of it. */
export type WorkerMessage = { id: number; line: string } | { id: number; end: true; failure?: string };
export type WorkerRequest = { folder: string } | { id: number; method: string; body: string } | { cancel: number };

let worker: Worker | undefined;
let calls = 0;
const pending = new Map<number, (message: WorkerMessage) => void>();

function startWorker(): Worker {
  const w = new Worker(new URL("../wasm-worker.ts", import.meta.url), { type: "module" });
  w.onmessage = (event: MessageEvent<WorkerMessage>) => pending.get(event.data.id)?.(event.data);
  w.onerror = (event) => {
    for (const [id, tell] of pending) tell({ id, end: true, failure: event.message || "The engine's worker does not start." });
    worker = undefined;
  };
  w.postMessage({ folder: new URL(".", document.baseURI).href } satisfies WorkerRequest);
  return w;
}

function work(method: string, body: string, answer: Answer, signal?: AbortSignal): Promise<void> {
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
      if ("line" in message) {
        try {
          answer.line(message.line);
        } catch (error) {
          settle(() => reject(error));
        }
        return;
      }
      const { failure } = message;
      settle(() => (failure === undefined ? resolve() : reject(new EngineError("", failure))));
    });
    w.postMessage({ id, method, body } satisfies WorkerRequest);
  });
}
