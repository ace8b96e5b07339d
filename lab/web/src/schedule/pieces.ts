// What pieces of packets are where, in a plan that cuts packets.
import type { Detail, Message, Plan, Slot } from "../lib/api";
import { portColour } from "../lib/ports";

/** The piece that a row or a column of the matrix is of, as its name says: 3 of x0.3. */
function pieceOf(name: string): number {
  return Number(name.slice(name.indexOf(".") + 1));
}

/** The pieces of packets in a slot, in order. */
export function piecesIn(detail: Detail, slot: Slot): number[] {
  return [...new Set(slot.rows.map((row) => pieceOf(detail.row_names[row]!)))].sort((a, b) => a - b);
}

/** The pieces that a message carries, in order. */
export function carriedPieces(detail: Detail, message: Message): number[] {
  const memory = detail.memory[message.src]!;
  return [...new Set(message.slots.flatMap((s) => piecesIn(detail, memory[s]!)))].sort((a, b) => a - b);
}

/**
 * By processor the piece that it is the helper of: the only one that it adds up packets of
 * others in. -1 where there is none, or there are several.
 */
export function helped(plan: Plan, detail: Detail): number[] {
  return detail.memory.map((memory) => {
    const found = new Set<number>();
    for (const slot of memory) {
      if (plan.info.pieces > 1 && slot.kind === "computed" && slot.rows.length > 1) for (const p of piecesIn(detail, slot)) found.add(p);
    }
    return found.size === 1 ? [...found][0]! : -1;
  });
}

/** Few pieces have the colours of ports, many those of a rainbow. */
export function pieceColour(piece: number, pieces: number): string {
  return pieces <= 8 ? portColour(piece) : `hsl(${Math.round((360 * piece) / pieces)} 65% var(--piece))`;
}

/** "piece 3 of x0 to x7", "pieces 0 2 4 6 of x1", "piece 3 of y4": what slots are about. */
export function aboutPieces(detail: Detail, slots: Slot[]): string {
  const parts = new Set<string>();
  const whole = new Set<string>();
  for (const slot of slots) {
    const coded = /^y\d+/.exec(slot.label)?.[0];
    for (const p of piecesIn(detail, slot)) parts.add(String(p));
    if (coded) whole.add(coded);
    else for (const row of slot.rows) whole.add(detail.row_names[row]!.replace(/\..*/, ""));
  }
  return `${parts.size === 1 ? "piece" : "pieces"} ${some([...parts], " ")} of ${some([...whole], ", ")}`;
}

const most = 10;

function some(list: string[], between: string): string {
  return list.slice(0, most).join(between) + (list.length > most ? ` … (${list.length})` : "");
}
