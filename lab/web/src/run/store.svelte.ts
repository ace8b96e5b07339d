// What the run view shows: the report of a run in the engine, or in a file. It outlives the view, so that other views can
// be looked at in between.
import type { Flags, Loaded, ModelRound, Report, RunResult } from "../lib/api";
import { asEngineError, call, EngineError, isAbort } from "../lib/engine";
import { bytes } from "../lib/format";

export interface Picture {
  from: "sample" | "file";
  /** The file it comes from. */
  name?: string;
  report: Report;
  model: ModelRound[];
  command?: string;
}

const mostBytes = 64 * 2 ** 20; // as the engine

class RunStore {
  picture: Picture | null = $state.raw(null);
  /** How the last run on sample data stands; "" where there is none, or a file came after it. */
  state: "" | "goes on" | "whole" | "cancelled" | "failed" = $state("");
  loading = $state(false);
  /** What is wrong with the files that were last to be loaded. */
  badFiles: string[] = $state.raw([]);
  /** What is wrong with the last run. */
  error: EngineError | null = $state.raw(null);

  private control: AbortController | undefined;
  private file: File | undefined;
  private modelOf = ""; // the flags of the model that is shown
  private asked: [flags: Flags, size: string, pace: string] | null = null;

  /** What is shown from before a run that failed. */
  get result(): Picture | null {
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
      this.picture = { from: "sample", ...result };
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

  /** Loads reports, and shows the last one that is good. */
  async load(files: File[], flags: Flags): Promise<void> {
    if (files.length === 0) return;
    this.loading = true;
    const bad: string[] = [];
    for (const file of files) {
      try {
        if (file.size > mostBytes) throw new EngineError("file", `${bytes(file.size)}, and files of at most ${bytes(mostBytes)} are read here`);
        const { report, model = [] } = await this.read(file, flags);
        this.cancel();
        this.control = undefined; // what comes of the run is not shown any more
        this.state = "";
        this.file = file;
        this.picture = { from: "file", name: file.name, report: report!, model };
      } catch (error) {
        const { message } = asEngineError(error);
        bad.push(message.startsWith(file.name) ? message : `${file.name}: ${message}`);
      }
    }
    this.badFiles = bad;
    this.loading = false;
  }

  /** Works out the model of a report anew, if it was made with other β and τ. */
  async remodel(flags: Flags): Promise<void> {
    const { picture, file } = this;
    if (picture?.from !== "file" || !file || JSON.stringify(modelFlags(flags)) === this.modelOf) return;
    try {
      const { model = [] } = await this.read(file, flags);
      if (this.picture === picture) this.picture = { ...picture, model };
    } catch {
      // The plan has the same flags, and what is wrong with them is said there.
    }
  }

  private async read(file: File, flags: Flags): Promise<Loaded> {
    const model = modelFlags(flags);
    const loaded = await call<Loaded>("load", { name: file.name, text: await file.text(), flags: model });
    this.modelOf = JSON.stringify(model);
    return loaded;
  }
}

export const runStore = new RunStore();

function modelFlags({ beta = "", tau = "" }: Flags): Flags {
  return { beta, tau };
}
