// Errors that the page shows: beside the input whose flag is at fault, or in the banner.
import { untrack } from "svelte";
import type { EngineError } from "./engine";

class Problems {
  private bySource: Record<string, EngineError> = $state.raw({});

  /** Says what is wrong with what `source` asked, or with null that all is well. */
  report(source: string, error: EngineError | null): void {
    const all = untrack(() => this.bySource); // who reports does not depend on what is reported
    if (all[source] === (error ?? undefined)) return;
    const { [source]: _, ...others } = all;
    this.bySource = error ? { ...others, [source]: error } : others;
  }

  /** The message beside the input of a flag. */
  at(flag: string): string {
    return Object.values(this.bySource).find((e) => e.field === flag)?.message ?? "";
  }

  /** Messages of no flag. */
  get banner(): string[] {
    return [...new Set(Object.values(this.bySource).filter((e) => e.field === "").map((e) => e.message))];
  }
}

export const problems = new Problems();
