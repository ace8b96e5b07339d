// Errors that the page shows: beside the input whose flag is at fault, or in the banner.
import { untrack } from "svelte";
import type { EngineError } from "./engine";

class Problems {
  private bySource: Record<string, EngineError> = $state.raw({});
  /** Flags that have a field on the page, which shows their messages. */
  private shown: string[] = $state.raw([]);

  /** A field shows the messages of a flag, until the function that it returns is called. */
  showAt(flag: string): () => void {
    this.shown = [...untrack(() => this.shown), flag];
    return () => (this.shown = untrack(() => this.shown).filter((f) => f !== flag));
  }

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

  /** Messages of no field that can be seen. */
  get banner(): string[] {
    const left = Object.values(this.bySource).filter((e) => !this.shown.includes(e.field));
    return [...new Set(left.map((e) => (e.field === "" || e.field === "file" ? e.message : `${e.field}: ${e.message}`)))];
  }
}

export const problems = new Problems();
