// What the run view shows: a run that goes on in the engine, or files. It outlives the
// view, so that other views can be looked at in between.
import type { Flags, Loaded, ModelRound, Report, Run, RunEvent, RunResult, RunStart, Span } from "../lib/api";
import { asEngineError, call, EngineError, isAbort } from "../lib/engine";
import { bytes } from "../lib/format";

export interface Picture {
  from: "sample" | "files";
  /** Files it comes from. */
  names: Partial<Record<Loaded["kind"], string>>;
  start?: RunStart;
  report?: Report;
  run?: Run;
  model?: ModelRound[];
  command?: string;
  /** Of a run on sample data, as a file. */
  trace?: string;
  /** How a run on sample data stands. */
  state?: "goes on" | "whole" | "cancelled" | "failed";
}

const mostBytes = 64 * 2 ** 20; // as the engine

class RunStore {
  picture: Picture | null = $state.raw(null);
  running = $state(false);
  loading = $state(false);
  /** What is wrong with the files that were last to be loaded. */
  badFiles: string[] = $state.raw([]);
  /** What is wrong with the last run. */
  error: EngineError | null = $state.raw(null);

  private control: AbortController | undefined;
  private files: Partial<Record<Loaded["kind"], File>> = {};
  private modelOf = ""; // the flags of the model that is shown
  private asked: [flags: Flags, size: string, pace: string] | null = null;

  /** What is shown from before the run that failed. */
  get result(): Picture | null {
    return this.picture?.state === "failed" ? null : this.picture;
  }

  retry(): void {
    if (this.asked) void this.runSample(...this.asked);
  }

  async runSample(flags: Flags, size: string, pace: string): Promise<void> {
    this.asked = [flags, size, pace];
    this.control?.abort();
    const control = (this.control = new AbortController());
    this.error = null;
    this.running = true;
    let live: Live | undefined;
    const onEvent = (event: RunEvent) => {
      if (control.signal.aborted) return;
      if (event.start) live = new Live(event.start, (picture) => this.control === control && (this.picture = picture));
      else live?.add(event.spans);
    };
    try {
      const result = await call<RunResult>("run", { flags, size, pace }, onEvent, control.signal);
      live?.end("whole", result);
    } catch (error) {
      live?.end(isAbort(error) ? "cancelled" : "failed");
      if (!isAbort(error) && this.control === control) this.error = asEngineError(error);
    }
    if (this.control === control) this.running = false;
  }

  cancel(): void {
    this.control?.abort();
  }

  /** Loads files. Of those that were good, the last of a kind stays until there is another. */
  async load(files: File[], flags: Flags): Promise<void> {
    if (files.length === 0) return;
    this.loading = true;
    const bad: string[] = [];
    const found: { name: string; loaded: Loaded }[] = [];
    for (const file of files) {
      try {
        if (file.size > mostBytes) throw new EngineError("file", `${bytes(file.size)}, and files of at most ${bytes(mostBytes)} are read here`);
        const loaded = await this.read(file, flags);
        found.push({ name: file.name, loaded });
        this.files[loaded.kind] = file;
      } catch (error) {
        const { message } = asEngineError(error);
        bad.push(message.startsWith(file.name) ? message : `${file.name}: ${message}`);
      }
    }
    const before = this.picture?.from === "files" ? this.picture : null;
    if (found.length > 0) {
      this.cancel();
      this.control = undefined; // what comes of the run is not shown any more
      this.running = false;
      this.picture = together(before, found);
      const shown = Object.values(this.picture.names);
      for (const { name } of found) {
        if (!shown.includes(name)) bad.push(`${name}: not of the run of ${shown.join(" and ")}, or another file of it is shown`);
      }
    }
    this.badFiles = bad;
    this.loading = false;
  }

  /** Works out the model of a report or trace anew, if it was made with other β and τ. */
  async remodel(flags: Flags): Promise<void> {
    const { picture } = this;
    const file = this.files[picture?.report ? "report" : "trace"];
    if (picture?.from !== "files" || !file || JSON.stringify(modelFlags(flags)) === this.modelOf) return;
    try {
      const { model } = await this.read(file, flags);
      if (this.picture?.names === picture.names) this.picture = { ...this.picture, model };
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

function modelFlags({ beta = "", tau = "", field = "" }: Flags): Flags {
  return { beta, tau, field };
}

/** A report and a trace are shown as of one run if both have as many processors and rounds. */
function together(before: Picture | null, found: { name: string; loaded: Loaded }[]): Picture {
  let picture: Picture = { from: "files", names: {} };
  if (before) picture = before;
  for (const { name, loaded } of found) {
    const next: Picture = { ...picture, names: { ...picture.names, [loaded.kind]: name } };
    if (loaded.kind === "report") Object.assign(next, { report: loaded.report, model: loaded.model });
    else Object.assign(next, { run: loaded.run, model: next.report ? next.model : loaded.model });
    picture = matching(next) ? next : only(loaded, name);
  }
  return picture;
}

function only(loaded: Loaded, name: string): Picture {
  return { from: "files", names: { [loaded.kind]: name }, report: loaded.report, run: loaded.run, model: loaded.model };
}

function matching({ report, run }: Picture): boolean {
  if (!report || !run) return true;
  return processorsOf(run) === report.processors && (run.rounds === 0 || run.rounds === report.rounds.length);
}

export function processorsOf(run: Run): number {
  return run.processors.reduce((n, [, last]) => Math.max(n, last + 1), 0);
}

/** Live collects the spans of a run that goes on, and shows them at most once a frame. */
class Live {
  private readonly picture: Picture;
  private readonly spans: Span[] = [];
  private seconds = 0;
  private frame = 0;

  constructor(
    private readonly start: RunStart,
    private readonly show: (picture: Picture) => unknown,
  ) {
    this.picture = { from: "sample", names: {}, start, model: start.model, state: "goes on" };
    this.flush();
  }

  add(spans: Span[]): void {
    for (const s of spans) {
      this.spans.push(s);
      this.seconds = Math.max(this.seconds, s.start + s.length);
    }
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  end(state: Picture["state"], result?: RunResult): void {
    cancelAnimationFrame(this.frame);
    if (result) this.show({ ...this.picture, state, report: result.report, run: result.run, command: result.command, trace: result.trace });
    else this.flush(state);
  }

  private flush(state: Picture["state"] = "goes on"): void {
    this.frame = 0;
    const { processors, rounds } = this.start;
    this.show({
      ...this.picture,
      state,
      run: {
        ranks: processors,
        processors: Array.from({ length: processors }, (_, k) => [k, k]),
        rounds,
        seconds: this.seconds,
        spans: this.spans,
      },
    });
  }
}
