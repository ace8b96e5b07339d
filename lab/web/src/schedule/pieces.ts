// What pieces of packets are where, in a plan that cuts packets.
import type { Detail, Plan, Slot } from "../lib/api";
import { portColour } from "../lib/ports";

/** The piece that a row or a column of the matrix is of, as its name says: 3 of x0.3. */
function pieceOf(name: string): number {
  return Number(name.slice(name.indexOf(".") + 1));
}

/** The pieces of packets in a slot, in order. */
function piecesIn(detail: Detail, slot: Slot): number[] {
  return [...new Set(slot.rows.map((row) => pieceOf(detail.row_names[row]!)))].sort((a, b) => a - b);
}

/** The pieces of packets in elements, in order. */
export function piecesOf(labels: string[]): number[] {
  return [...new Set(labels.flatMap((l) => namesIn(l).map(pieceOf)))].sort((a, b) => a - b);
}

/** Of a result its name, of other sums those of their packets. */
function namesIn(label: string): string[] {
  return label.match(/^y[\d.]+/) ?? label.match(/x\d+\.\d+/g) ?? [];
}

/**
 * By processor the piece that it is the helper of: the only one that it adds up packets of
 * others in. -1 where there is none, or there are several.
 */
export function helped(plan: Plan, detail: Detail | null): number[] {
  if (!detail) return Array<number>(plan.info.processors).fill(-1);
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

/** "piece 3 of x0, x1 …", "pieces 0 2 4 6 of x1", "piece 3 of y4": what elements of a plan that cuts packets are about. */
export function aboutPieces(labels: string[]): string {
  const parts = piecesOf(labels).map(String);
  const whole = new Set(labels.flatMap((l) => namesIn(l).map((name) => name.replace(/\..*/, ""))));
  return `${parts.length === 1 ? "piece" : "pieces"} ${some(parts, " ")} of ${some([...whole], ", ")}`;
}

/** What elements are: of a cut packet the pieces, of a sum for one result that it is a part. */
export function about(labels: string[], pieces: number): string {
  return pieces > 1 ? aboutPieces(labels) : some([...new Set(labels.map((l) => l.replace(/^(y\d+)\(.*/, "part of $1")))], ", ");
}

const most = 4;

function some(list: string[], between: string): string {
  return list.length <= most + 2 ? list.join(between) : `${list.slice(0, most).join(between)} … ${list.at(-1)}`;
}
