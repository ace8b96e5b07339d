// Spans in words.
import type { Span } from "../lib/api";
import { bytes, number, seconds } from "../lib/format";
import type { Shown } from "./rounds";

export type Kind = Span["kind"];

/** As docs/trace.md says it. */
export const meanings: Record<Kind, string> = {
  code: "computes what the next round sends, or the result after the last one",
  wait: "waits for a message to come",
  settle: "waits until a message was taken",
  send: "a message under way, from its start until it was there (the trace has it until the sender saw it taken)",
  receive: "a message, from when it was asked for until it was there",
  observe: "takes fingerprints for the check",
  agree: "compares with the others what all are about to do",
  plan: "chooses the plan",
  compile: "makes the programs ready",
  check: "compares the fingerprints",
  read: "reads the inputs of a segment",
  write: "writes the outputs of a segment",
  turn: "waits until another segment was read or written",
};

const ofRounds: Kind[] = ["code", "wait", "settle", "send", "receive"];

/** The round of a span, or null. */
export function roundOf(s: Span): number | null {
  return ofRounds.includes(s.kind) && s.round >= 0 ? s.round : null;
}

function processors(first: number, last: number): string {
  return first === last ? `P${first}` : `P${first}–${last}`;
}

export function title(s: Span): string {
  if (s.kind === "code" && s.round < 0) return "code after the last round";
  const round = roundOf(s);
  return round === null ? s.kind : `${s.kind}, round ${round}`;
}

/** Who sends to whom, or who does it. */
export function parties(s: Span): string {
  const own = processors(s.first, s.last);
  switch (s.kind) {
    case "send":
      return `${own} → P${s.partner}, port ${s.port}`;
    case "receive":
      return `P${s.partner} → ${own}, port ${s.port}`;
    case "wait":
      return `${own}, for P${s.partner}`;
    case "settle":
      return `${own}, for P${s.partner}`;
    default:
      return own;
  }
}

/** How long a send was in the trace, where that was longer. */
export function taken(s: Shown): string {
  const end = s.start + s.length;
  return s.end < end ? `seen to be taken at ${seconds(end)}` : "";
}

export function amount(s: Span): string {
  return s.bytes > 0 ? bytes(s.bytes) : "";
}

/** Measured against model: "1.08", "—" where the model has nothing. */
export function ratio(measured: number, model: number): string {
  const x = measured / model;
  if (!(model > 0)) return "—";
  return x < 100 ? x.toFixed(x < 10 ? 2 : 1) : number(Math.round(x));
}
