// Errors that the page shows: beside the input whose flag is at fault, or in the banner.
import { untrack } from "svelte";
import type { EngineError } from "./engine";
import { labelOf } from "./labels";

/** What can be asked once more. */
interface Question {
  /** What is shown of an earlier answer. */
  readonly result: unknown;
  retry(): void;
}

class Problems {
  private bySource: Record<string, { error: EngineError; question?: Question }> = $state.raw({});
  /** Flags that have a field on the page, which shows their messages. */
  private shown: string[] = $state.raw([]);

  /** A field shows the messages of a flag, until the function that it returns is called. */
  showAt(flag: string): () => void {
    this.shown = [...untrack(() => this.shown), flag];
    return () => (this.shown = untrack(() => this.shown).filter((f) => f !== flag));
  }

  /** Says what is wrong with what `source` asked, or with null that all is well. */
  report(source: string, error: EngineError | null, question?: Question): void {
    const all = untrack(() => this.bySource); // who reports does not depend on what is reported
    if (all[source]?.error === (error ?? undefined)) return;
    const { [source]: _, ...others } = all;
    this.bySource = error ? { ...others, [source]: { error, question } } : others;
  }

  /** The message beside the input of a flag. */
  at(flag: string): string {
    return this.errors.find((e) => e.field === flag)?.message ?? "";
  }

  /** Questions of this view that were not answered for no fault of theirs: the engine is gone, or busy. */
  get unanswered(): Question[] {
    return Object.values(this.bySource).flatMap((p) => (p.error.field === "" && p.question ? [p.question] : []));
  }

  private get errors(): EngineError[] {
    return Object.values(this.bySource).map((p) => p.error);
  }

  /** Messages of no field that can be seen. */
  get banner(): string[] {
    const left = this.errors.filter((e) => !this.shown.includes(e.field));
    return [...new Set(left.map((e) => (e.field === "" || e.field === "file" ? e.message : `${labelOf(e.field)}: ${e.message}`)))];
  }
}

export const problems = new Problems();
