// The plan of the flags in the address, for all views. The last good one stays while
// another is made, or when the flags are wrong.
import type { Flags, Plan } from "./api";
import { asEngineError, call, isAbort } from "./engine";
import { problems } from "./problems.svelte";

const delay = 150; // ms, while somebody types

class PlanStore {
  result: Plan | null = $state.raw(null);
  /** Counts results: a key for what is to be made anew with each. */
  version = $state(0);
  busy = $state(false);
  /** The result is not that of the flags. */
  stale = $state(false);

  private asked = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private control: AbortController | undefined;

  ask(flags: Flags): void {
    const key = JSON.stringify(flags);
    if (key === this.asked) return;
    const first = this.asked === "";
    this.asked = key;
    clearTimeout(this.timer);
    this.control?.abort();
    this.timer = setTimeout(() => void this.fetch(flags), first ? 0 : delay);
  }

  private async fetch(flags: Flags): Promise<void> {
    const control = (this.control = new AbortController());
    this.busy = true;
    try {
      const plan = await call<Plan>("plan", { flags }, undefined, control.signal);
      this.result = plan;
      this.version++;
      this.stale = false;
      problems.report("plan", null);
    } catch (error) {
      if (isAbort(error)) return;
      this.stale = true;
      problems.report("plan", asEngineError(error));
    }
    this.busy = false;
  }
}

export const planStore = new PlanStore();
