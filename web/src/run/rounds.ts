// What the rounds of a run took, from the spans of its messages.
import type { Run, Span } from "../lib/api";

export interface Measured {
  rounds: MeasuredRound[];
  /** When the first message of each round and segment began, and its last ended; in the order in which they began. */
  bars: { round: number; segment: number; start: number; end: number }[];
  segments: number;
  /** From the first message to the last, s from the beginning of the run; 0 if there are none. */
  start: number;
  end: number;
}

export interface MeasuredRound {
  round: number;
  /** From a processor's first message to its last, of all segments, in s: median and most. */
  median: number;
  slowest: number;
  slowestProcessor: number;
  bytes: number;
  messages: number;
}

interface Interval {
  start: number;
  end: number;
}

export function isMessage(s: Span): boolean {
  return s.kind === "send" || s.kind === "receive";
}

export function measure(run: Run): Measured {
  const bars = new Map<number, Map<number, Interval>>(); // by round and segment
  const own = new Map<number, Map<string, Interval>>(); // by round, and by processor and segment
  const sent = new Map<number, { bytes: number; messages: number }>();
  let segments = 0;
  for (const s of run.spans) {
    segments = Math.max(segments, s.segment + 1);
    if (!isMessage(s)) continue;
    widen(inner(bars, s.round), s.segment, s);
    widen(inner(own, s.round), `${s.first}/${s.segment}`, s);
    const sum = sent.get(s.round) ?? { bytes: 0, messages: 0 };
    if (s.kind === "send") {
      sum.bytes += s.bytes;
      sum.messages++;
    }
    sent.set(s.round, sum);
  }
  const list = [...bars].flatMap(([round, of]) => [...of].map(([segment, x]) => ({ round, segment, ...x })));
  list.sort((a, b) => a.start - b.start || a.round - b.round);
  return {
    rounds: [...own].sort(([a], [b]) => a - b).map(([round, of]) => ({ round, ...spread(of), ...sent.get(round)! })),
    bars: list,
    segments,
    start: list[0]?.start ?? 0,
    end: list.reduce((t, b) => Math.max(t, b.end), 0),
  };
}

function spread(of: Map<string, Interval>): { median: number; slowest: number; slowestProcessor: number } {
  const took = new Map<number, number>();
  for (const [key, x] of of) {
    const processor = parseInt(key, 10);
    took.set(processor, (took.get(processor) ?? 0) + x.end - x.start);
  }
  const sorted = [...took].sort(([, a], [, b]) => a - b);
  const middle = (sorted.length - 1) / 2;
  const [slowestProcessor, slowest] = sorted.at(-1)!;
  return { median: (sorted[Math.floor(middle)]![1] + sorted[Math.ceil(middle)]![1]) / 2, slowest, slowestProcessor };
}

function inner<K, V>(of: Map<number, Map<K, V>>, key: number): Map<K, V> {
  let found = of.get(key);
  if (!found) of.set(key, (found = new Map<K, V>()));
  return found;
}

function widen<K>(of: Map<K, Interval>, key: K, s: Span): void {
  const x = of.get(key);
  const end = s.start + s.length;
  if (!x) {
    of.set(key, { start: s.start, end });
    return;
  }
  x.start = Math.min(x.start, s.start);
  x.end = Math.max(x.end, end);
}

/** How far a processor is. */
export interface Progress {
  /** The round it is in; -1 before the first, the number of rounds after the last. */
  round: number;
  text: string;
}

/** How far each processor of a run is that goes on, by what has ended there. */
export function progressOf(run: Run): Progress[] {
  const found: Progress[] = run.processors.map(() => ({ round: -1, text: "" }));
  for (const s of run.spans) {
    const p = found[s.rank];
    if (!p) continue;
    if (s.kind === "check") {
      found[s.rank] = { round: run.rounds, text: "checked" };
    } else if (s.kind === "code" && s.round < 0) {
      found[s.rank] = { round: run.rounds, text: "coded" };
    } else if ((s.kind === "code" || isMessage(s)) && s.round > p.round) {
      found[s.rank] = { round: s.round, text: `round ${s.round}` };
    } else if (p.round < 0 && s.row === 0) {
      p.text = { agree: "agreed", plan: "planned", compile: "compiled" }[s.kind as string] ?? p.text;
    }
  }
  return found;
}
