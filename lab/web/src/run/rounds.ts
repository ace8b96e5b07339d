// What the rounds of a run took, from the spans of its messages.
import type { Run, Span } from "../lib/api";

/** A span, and when what it is about went on. */
export interface Shown extends Span {
  /** Up to when it counts: of a send, until it was there. */
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
  const shown = spans.slice() as Shown[]; // of the same objects: they are many
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
  segments: number;
  /** From the first message to the last. */
  seconds: number;
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
  const own = new Map<number, Map<string, Interval>>(); // by round, and by processor and segment
  const sent = new Map<number, Amount>();
  const received = new Map<number, Amount>(); // of runs that go on, sends become known later
  let [segments, start, end] = [0, Infinity, 0];
  for (const s of spans) {
    segments = Math.max(segments, s.segment + 1);
    if (!isMessage(s)) continue;
    start = Math.min(start, s.begin);
    end = Math.max(end, s.end);
    widen(inner(own, s.round), `${s.first}/${s.segment}`, { start: s.begin, end: s.end });
    const sums = s.kind === "send" ? sent : received;
    const { bytes, messages } = sums.get(s.round) ?? { bytes: 0, messages: 0 };
    sums.set(s.round, { bytes: bytes + s.bytes, messages: messages + 1 });
  }
  return {
    rounds: [...own].sort(([a], [b]) => a - b).map(([round, of]) => ({ round, ...spread(of), ...more(sent.get(round), received.get(round)) })),
    segments,
    seconds: Math.max(0, end - start),
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

/** The round that each rank of a run that goes on has reached, by what has ended there: -1 before the first, their number after the last. */
export function reached(run: Run): number[] {
  const found = run.processors.map(() => -1);
  for (const s of run.spans) {
    const over = s.kind === "check" || (s.kind === "code" && s.round < 0);
    if (over || s.kind === "code" || isMessage(s)) found[s.rank] = Math.max(found[s.rank] ?? -1, over ? run.rounds : s.round);
  }
  return found;
}
