// What a schedule says, apart from how it is drawn: messages by round, how far they go,
// what they carry, and which of them are those of one processor, its packet or its result.
import type { Detail, Message, Plan, Slot } from "../lib/api";
import { phaseOf } from "../lib/phases";

export interface Arrow {
  /** round.src.port, which no other message has. */
  id: string;
  round: number;
  /** Columns to the right, or to the left when negative; beyond a side it comes in at the other. */
  span: number;
  message: Message;
}

export interface Schedule {
  plan: Plan;
  /** Unless it is too much. */
  detail: Detail | null;
  /** Too many messages for an arrow each: those of one processor stand out as ribbons. */
  dense: boolean;
  rounds: Arrow[][];
  /** By round. */
  phases: string[];
  /** By round, such as "k → k+2", or "" where processors send differently far. */
  patterns: string[];
}

const mostDrawn = 16; // processors whose arrows the eye can follow,
const mostSent = 3; // where each sends so few in a round

export function schedule(plan: Plan): Schedule {
  const k = plan.info.processors;
  const most = Math.max(0, ...plan.messages.flatMap((list) => [...busy(list, "src").values()]));
  return {
    plan,
    detail: plan.detail ?? null,
    dense: k > mostDrawn || most > mostSent,
    phases: phaseOf(plan.info.phases),
    patterns: plan.messages.map((list) => pattern(list, k)),
    rounds: plan.messages.map((list, round) => {
      const far = k === 2 ? new Map<number, number>() : shifts(list, k); // two arrows that cross say more
      const ordered = [...list].sort((a, b) => a.src - b.src || a.port - b.port);
      return ordered.map((message) => {
        const d = far.get(message.port);
        const span = d === undefined ? message.dst - message.src : 2 * d > k ? d - k : d;
        return { id: `${round}.${message.src}.${message.port}`, round, span, message };
      });
    }),
  };
}

/** How much each processor sends, or gets: messages, or what is counted of each. */
export function busy(list: Message[], end: "src" | "dst", of: (m: Message) => number = () => 1): Map<number, number> {
  const count = new Map<number, number>();
  for (const m of list) count.set(m[end], (count.get(m[end]) ?? 0) + of(m));
  return count;
}

/** How far everybody sends, for the ports on which all k processors send equally far. */
function shifts(list: Message[], k: number): Map<number, number> {
  const byPort = new Map<number, Message[]>();
  for (const m of list) byPort.set(m.port, [...(byPort.get(m.port) ?? []), m]);
  const far = new Map<number, number>();
  for (const [port, messages] of byPort) {
    const distances = new Set(messages.map((m) => (m.dst - m.src + k) % k));
    if (messages.length === k && distances.size === 1) far.set(port, [...distances][0]!);
  }
  return far;
}

function pattern(list: Message[], k: number): string {
  const far = shifts(list, k);
  if (list.length === 0 || far.size * k !== list.length) return "";
  const names = [...far.keys()].sort((a, b) => a - b).map((p) => `k+${far.get(p)}`);
  return `k → ${(names.length > 4 ? [...names.slice(0, 2), "…", names.at(-1)] : names).join(", ")}`;
}

/** What the elements of a message are at the sender. */
export function carried(detail: Detail, message: Message): Slot[] {
  return message.slots.map((s) => detail.memory[message.src]![s]!);
}

/** The packets that a message is made of, in a plan that leaves them whole. */
export function packetsIn(detail: Detail, message: Message): number[] {
  return [...new Set(carried(detail, message).flatMap((s) => s.rows))].sort((a, b) => a - b);
}

/** The packets that each processor has heard, alone or in sums, when so many rounds have passed. */
export function heard(detail: Detail, rounds: Arrow[][], passed: number): Set<number>[] {
  const all = detail.inputs.map((rows) => new Set(rows));
  for (const { message } of rounds.slice(0, passed).flat()) for (const packet of packetsIn(detail, message)) all[message.dst]!.add(packet);
  return all;
}

/** What the elements of a message are called, as far as the engine says. */
export function labelsIn({ detail }: Schedule, message: Message): string[] {
  return detail ? carried(detail, message).map((s) => s.label) : message.labels;
}

/** All that a message carries, in words. */
export function inWords(s: Schedule, arrow: Arrow): string {
  const { src, dst, port } = arrow.message;
  const labels = labelsIn(s, arrow.message);
  return `round ${arrow.round}: ${src} → ${dst} on port ${port}: ${labels.join(" ")}`;
}

/** The messages to which all words of a text apply: x3, y5, p2 for a processor, r1 for a round, or the beginning of a phase. */
export function search(s: Schedule, text: string): string[] {
  const words = text.split(/\s+/);
  const applies = (a: Arrow, word: string) => {
    const number = /^[pr](\d+)$/.exec(word);
    if (word[0] === "p" && number) return [a.message.src, a.message.dst].includes(Number(number[1]));
    if (number) return a.round === Number(number[1]);
    if (s.phases[a.round]?.toLowerCase().startsWith(word)) return true;
    return labelsIn(s, a.message).some((label) => label.split(/[^\w.]+/).includes(word));
  };
  return s.rounds.flat().filter((a) => words.every((word) => applies(a, word))).map((a) => a.id);
}

/** What stands out: the messages of a processor, the way of its packet, or the ways to its result. */
export const kinds = ["own", "spread", "gather"] as const;
export type Kind = (typeof kinds)[number];

/** Whether the processor has something of the kind: sinks may hold no packet, sources get no result. */
export function has(detail: Detail | null, kind: Kind, processor: number): boolean {
  return kind === "own" || (detail !== null && (kind === "spread" ? detail.inputs : detail.outputs)[processor]!.length > 0);
}

/** "x3" or "y3": what the way of a packet or of a result is about. */
export function subjectOf(detail: Detail, kind: Kind, processor: number): string {
  const names = kind === "gather" ? detail.outputs[processor]!.map((o) => detail.column_names[o.column]!) : detail.inputs[processor]!.map((r) => detail.row_names[r]!);
  return [...new Set(names.map((n) => n.replace(/\.\d+$/, "")))].join(" "); // pieces x3.0, x3.1 are x3
}

/** The messages that stand out, by round. */
export function standOut({ detail, rounds }: Schedule, kind: Kind, processor: number): Arrow[] {
  if (kind === "own" || !detail) return rounds.flat().filter(({ message: m }) => m.src === processor || m.dst === processor);
  const wanted = new Set(kind === "spread" ? detail.inputs[processor]! : detail.outputs[processor]!.map((o) => o.column));
  return rounds.flat().filter(({ message: m }) =>
    m.slots.some((slot, i) => {
      const { rows } = detail.memory[m.src]![slot]!;
      if (kind === "spread") return rows.some((r) => wanted.has(r));
      return rows.length > 0 && detail.memory[m.dst]![m.received + i]!.columns.some((c) => wanted.has(c));
    }),
  );
}
