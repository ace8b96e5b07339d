// What the rounds of a run took, from the spans of its messages.
import type { Run, Span } from "../lib/api";

/** A span, and when what it is about went on. */
export interface Shown extends Span {
  /** Up to when it is drawn. */
  end: number;
  /** From when it counts: of a message, from when it was sent. */
  begin: number;
}

/**
 * Finds the other ends of messages. A send is in the trace until its sender has looked
 * whether it was taken, which may be much later than need be: here it ends when its receiver
 * has found it there. Receivers may ask for a message long before it is sent.
 */
export function matched(spans: Span[]): Shown[] {
  const shown = spans.slice() as Shown[]; // of the same objects, so that what is in focus stays so
  const sends = new Map<string, Shown>();
  for (const s of shown) {
    s.begin = s.start;
    s.end = s.start + s.length;
    if (s.kind === "send") sends.set(`${s.first} ${s.partner} ${s.segment} ${s.round} ${s.port}`, s);
  }
  for (const s of shown) {
    const send = s.kind === "receive" && sends.get(`${s.partner} ${s.first} ${s.segment} ${s.round} ${s.port}`);
    if (!send) continue;
    send.end = Math.max(send.start, Math.min(send.end, s.end)); // clocks of machines differ
    s.begin = Math.max(s.start, Math.min(send.start, s.end));
  }
  return shown;
}

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
  /** From when a processor's first message was sent to when its last was there, of all segments, in s: median and most. */
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

interface Amount {
  bytes: number;
  messages: number;
}

function more(a: Amount = { bytes: 0, messages: 0 }, b = a): Amount {
  return b.messages > a.messages ? b : a;
}

export function isMessage(s: Span): boolean {
  return s.kind === "send" || s.kind === "receive";
}

export function measure(spans: Shown[]): Measured {
  const bars = new Map<number, Map<number, Interval>>(); // by round and segment
  const own = new Map<number, Map<string, Interval>>(); // by round, and by processor and segment
  const sent = new Map<number, Amount>();
  const received = new Map<number, Amount>(); // of runs that go on, sends become known later
  let segments = 0;
  for (const s of spans) {
    segments = Math.max(segments, s.segment + 1);
    if (!isMessage(s)) continue;
    const went = { start: s.begin, end: s.end };
    widen(inner(bars, s.round), s.segment, went);
    widen(inner(own, s.round), `${s.first}/${s.segment}`, went);
    const sums = s.kind === "send" ? sent : received;
    const { bytes, messages } = sums.get(s.round) ?? { bytes: 0, messages: 0 };
    sums.set(s.round, { bytes: bytes + s.bytes, messages: messages + 1 });
  }
  const list = [...bars].flatMap(([round, of]) => [...of].map(([segment, x]) => ({ round, segment, ...x })));
  list.sort((a, b) => a.start - b.start || a.round - b.round);
  return {
    rounds: [...own].sort(([a], [b]) => a - b).map(([round, of]) => ({ round, ...spread(of), ...more(sent.get(round), received.get(round)) })),
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

function widen<K>(of: Map<K, Interval>, key: K, s: Interval): void {
  const x = of.get(key);
  if (!x) {
    of.set(key, { start: s.start, end: s.end });
    return;
  }
  x.start = Math.min(x.start, s.start);
  x.end = Math.max(x.end, s.end);
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
