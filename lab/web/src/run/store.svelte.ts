// What the run view shows: the report of a run in the engine. It outlives the view, so that other views can be looked at in
// between.
import type { Flags, RunResult } from "../lib/api";
import { asEngineError, call, EngineError, isAbort } from "../lib/engine";

class RunStore {
  picture: RunResult | null = $state.raw(null);
  /** How the last run on sample data stands; "" where there is none. */
  state: "" | "goes on" | "whole" | "cancelled" | "failed" = $state("");
  /** What is wrong with the last run. */
  error: EngineError | null = $state.raw(null);

  private control: AbortController | undefined;
  private asked: [flags: Flags, size: string, pace: string] | null = null;

  /** What is shown from before a run that failed. */
  get result(): RunResult | null {
    return this.picture;
  }

  retry(): void {
    if (this.asked) void this.runSample(...this.asked);
  }

  async runSample(flags: Flags, size: string, pace: string): Promise<void> {
    this.asked = [flags, size, pace];
    this.control?.abort();
    const control = (this.control = new AbortController());
    this.error = null;
    this.state = "goes on";
    try {
      const result = await call<RunResult>("run", { flags, size, pace }, control.signal);
      if (this.control !== control) return;
      this.picture = result;
      this.state = "whole";
    } catch (error) {
      if (this.control !== control) return;
      this.state = isAbort(error) ? "cancelled" : "failed";
      if (!isAbort(error)) this.error = asEngineError(error);
    }
  }

  cancel(): void {
    this.control?.abort();
  }
}

export const runStore = new RunStore();
