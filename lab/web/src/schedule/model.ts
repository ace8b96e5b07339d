// What a schedule says, apart from how it is drawn: messages by round, how far they go,
// what they carry, and the two kinds of trees in them.
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
  detail: Detail;
  rounds: Arrow[][];
  /** By round. */
  phases: string[];
  /** By round, such as "k → k+2", or "" where processors send differently far. */
  patterns: string[];
}

export function schedule(plan: Plan, detail: Detail): Schedule {
  const k = plan.info.processors;
  return {
    plan,
    detail,
    phases: phaseOf(plan.info.phases),
    patterns: detail.rounds.map((list) => pattern(list, k)),
    rounds: detail.rounds.map((list, round) => {
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

/** All that a message carries, in words. */
export function inWords(detail: Detail, arrow: Arrow): string {
  const { src, dst, port } = arrow.message;
  const labels = carried(detail, arrow.message).map((s) => s.label);
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
    return carried(s.detail, a.message).some((slot) => slot.label.split(/[^\w.]+/).includes(word));
  };
  return s.rounds.flat().filter((a) => words.every((word) => applies(a, word))).map((a) => a.id);
}

/** Where the packet of a processor goes, or where its result comes from. */
export type TreeKind = "spread" | "gather";

/** Whether the processor has such a tree: sinks may hold no packet, sources get no result. */
export function hasTree(detail: Detail, kind: TreeKind, processor: number): boolean {
  return (kind === "spread" ? detail.inputs : detail.outputs)[processor]!.length > 0;
}

/** "x3" or "y3": what the tree of the processor is about. */
export function treeSubject(detail: Detail, kind: TreeKind, processor: number): string {
  const names =
    kind === "spread" ? detail.inputs[processor]!.map((r) => detail.row_names[r]!) : detail.outputs[processor]!.map((o) => detail.column_names[o.column]!);
  return [...new Set(names.map((n) => n.replace(/\.\d+$/, "")))].join(" "); // pieces x3.0, x3.1 are x3
}

/** The messages of a tree, by round. */
export function treeArrows(s: Schedule, kind: TreeKind, processor: number): Arrow[] {
  const { detail } = s;
  const wanted = subjectOf(detail, kind, processor);
  return s.rounds.flatMap((list) => list.filter((a) => elementOf(detail, kind, wanted, a.message) >= 0));
}

function subjectOf(detail: Detail, kind: TreeKind, processor: number): Set<number> {
  return new Set(kind === "spread" ? detail.inputs[processor]! : detail.outputs[processor]!.map((o) => o.column));
}

/** Which element of the message belongs to a tree, or -1. */
function elementOf(detail: Detail, kind: TreeKind, wanted: Set<number>, m: Message): number {
  return m.slots.findIndex((slot, i) => {
    const sent = detail.memory[m.src]![slot]!;
    if (kind === "spread") return sent.rows.some((r) => wanted.has(r));
    return sent.rows.length > 0 && detail.memory[m.dst]![m.received[i]!]!.columns.some((c) => wanted.has(c));
  });
}

/** A node of a tree as TreePanel draws it. */
export interface TreeNode {
  id: string;
  text: string;
  /** What stands beside the edge to the parent. */
  edge?: string;
  port?: number;
  /** The row of the drawing; by default the depth. */
  level?: number;
  title?: string;
  children: TreeNode[];
}

/**
 * The tree of a processor. A node is a message: the processor where it arrives (spread) or
 * from which it comes (gather). Where an element comes by several ways, the first counts.
 */
export function tree(s: Schedule, kind: TreeKind, processor: number): TreeNode {
  const { detail } = s;
  const arrows = treeArrows(s, kind, processor);
  const wanted = subjectOf(detail, kind, processor);
  const root: TreeNode = { id: "root", text: String(processor), level: 0, title: treeSubject(detail, kind, processor), children: [] };
  const rounds = s.rounds.length;
  const nodes = new Map<string, TreeNode>();
  for (const a of arrows) {
    const { src, dst, port } = a.message;
    const label = carried(detail, a.message)[elementOf(detail, kind, wanted, a.message)]!.label;
    nodes.set(a.id, {
      id: a.id,
      text: String(kind === "spread" ? dst : src),
      edge: label,
      port,
      level: kind === "spread" ? a.round + 1 : rounds - a.round,
      title: inWords(detail, a),
      children: [],
    });
  }
  const parent = kind === "spread" ? origin : destination;
  for (const a of arrows) {
    const id = parent(detail, a, arrows, wanted);
    (nodes.get(id) ?? root).children.push(nodes.get(a.id)!);
  }
  return root;
}

/** The message by which the sender of `a` got what it passes on, or "root". */
function origin(detail: Detail, a: Arrow, _: Arrow[], rows: Set<number>): string {
  const memory = detail.memory[a.message.src]!;
  const has = (slot: number) => memory[slot]!.rows.some((r) => rows.has(r));
  let slot: number | undefined = a.message.slots.find(has);
  while (slot !== undefined) {
    const s: Slot = memory[slot]!;
    if (s.kind === "received") return `${s.round}.${s.from}.${s.port}`;
    slot = terms(s).find(has);
  }
  return "root";
}

/** The message that carries on what came with `a`, or "root". */
function destination(detail: Detail, a: Arrow, arrows: Arrow[], columns: Set<number>): string {
  const memory = detail.memory[a.message.dst]!;
  const goes = (slot: number) => memory[slot]!.columns.some((c) => columns.has(c));
  let slot: number | undefined = a.message.received.find(goes);
  while (slot !== undefined) {
    const now: number = slot;
    const next = arrows.find(
      (b) => b.round > a.round && b.message.src === a.message.dst && b.message.slots.some((s, i) => s === now && goesAt(detail, b.message, i, columns)),
    );
    if (next) return next.id;
    const sum = memory.findIndex((s, i) => i > now && s.kind === "computed" && goes(i) && terms(s).includes(now));
    slot = sum < 0 ? undefined : sum;
  }
  return "root";
}

function goesAt(detail: Detail, m: Message, element: number, columns: Set<number>): boolean {
  return detail.memory[m.dst]![m.received[element]!]!.columns.some((c) => columns.has(c));
}

const parsed = new WeakMap<Slot, number[]>();

/** The slots of which a computed one is the sum. */
function terms(slot: Slot): number[] {
  let list = parsed.get(slot);
  if (!list) {
    list = [...(slot.formula ?? "").matchAll(/s(\d+)/g)].map((m) => Number(m[1]));
    parsed.set(slot, list);
  }
  return list;
}
