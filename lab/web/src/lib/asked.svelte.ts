// What the engine answers to a question that changes with the address. The last good answer
// stays while another one is on its way, or when the question is wrong.
import { asEngineError, call, isAbort, type EngineError } from "./engine";
import { problems } from "./problems.svelte";

const delay = 150; // ms, while somebody types
const all: { busy: boolean }[] = [];

/** Whether a question is open: what the page shows is about to change. */
export function questionsOpen(): boolean {
  return all.some((asked) => asked.busy);
}

export class Asked<Q, R> {
  result: R | null = $state.raw(null);
  busy = $state(false);
  error: EngineError | null = $state.raw(null);

  private key = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private control: AbortController | undefined;
  private readonly source: string;

  /** Errors at fields of `own` are shown by the view that asks, the others by the page. Answers that fit no other question do not stay. */
  constructor(
    private readonly method: string,
    private readonly own: string[] = [],
    private readonly stays = true,
  ) {
    this.source = `${method} ${all.push(this)}`;
  }

  ask(question: Q): void {
    const key = JSON.stringify(question);
    if (key === this.key) {
      this.report();
      return;
    }
    const first = this.key === "";
    this.key = key;
    clearTimeout(this.timer);
    this.control?.abort();
    this.busy = true;
    this.timer = setTimeout(() => void this.fetch(question), first ? 0 : delay);
  }

  /** Shows a result that is not the engine's answer, until another question is asked. */
  put(question: Q, result: R): void {
    clearTimeout(this.timer);
    this.control?.abort();
    this.key = JSON.stringify(question);
    this.result = result;
    this.error = null;
    this.busy = false;
    this.report();
  }

  /** Takes its message from the page: nobody looks at it. */
  leave(): void {
    problems.report(this.source, null);
  }

  /** The result is not that of the last question. */
  get stale(): boolean {
    return this.error !== null;
  }

  retry(): void {
    const question = JSON.parse(this.key) as Q;
    this.key = "";
    this.ask(question);
  }

  /** The message beside a field of the view's own. */
  at(field: string): string {
    return this.error?.field === field ? this.error.message : "";
  }

  private async fetch(question: Q): Promise<void> {
    const control = (this.control = new AbortController());
    try {
      this.result = await call<R>(this.method, question, control.signal);
      this.error = null;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = asEngineError(error);
      if (!this.stays) this.result = null;
    }
    this.busy = false;
    this.report();
  }

  private report(): void {
    const elsewhere = this.error && !this.own.includes(this.error.field);
    problems.report(this.source, elsewhere ? this.error : null, this);
  }
}
