// How the transfer matrix comes about: what each entry is after so many rounds, and what
// is in a processor's memory by then.
import type { Detail, Plan, Slot } from "../lib/api";
import { termsOf, type Sum } from "../lib/sums";

/**
 * Of an entry (i, j): empty when the processor of y_j knows nothing of x_i; heard when it
 * holds something with x_i in it, but not for y_j; partial and final when y_j, were it
 * complete now, would have so much of x_i; wrong when it stays different from A.
 */
export type CellState = "empty" | "heard" | "partial" | "final" | "wrong" | "given";

export interface Cell {
  row: number;
  column: number;
  state: CellState;
  value: string;
  /** The last round has changed it. */
  fresh: boolean;
}

/** A slot in the memory of a processor. */
export interface Held {
  index: number;
  slot: Slot;
}

/** What came into a memory at a time: 0 is the start, t what follows from round t-1. */
export interface Arrival {
  time: number;
  slots: Held[];
}

interface Change {
  time: number;
  value: string;
}

interface Entry {
  changes: Change[];
  want: string;
  /** From when on it is as in A and does not change; Infinity if never. */
  settled: number;
  cell?: Cell;
}

export class Proof {
  readonly rounds: number;
  readonly pieces: number;
  /** Entries that can be other than zero: pieces of packets are coded each for itself. */
  readonly total: number;

  private readonly entries = new Map<number, Entry>();
  /** By column. */
  private readonly owners: { processor: number; slot: number }[] = [];
  /** By processor and row: when the processor first holds something of it. */
  private readonly heard: Map<number, number>[];
  /** By time: entries that are settled. */
  private readonly right: number[];

  constructor(
    readonly plan: Plan,
    readonly detail: Detail,
  ) {
    this.rounds = plan.cost.c1;
    this.pieces = plan.info.pieces;
    for (const [processor, outputs] of detail.outputs.entries()) {
      for (const { column, slot } of outputs) this.owners[column] = { processor, slot };
    }
    this.heard = detail.memory.map(firstHeard);
    this.fill();
    this.total = this.entries.size;
    this.right = Array<number>(this.rounds + 1).fill(0);
    for (const e of this.entries.values()) {
      for (let t = e.settled; t <= this.rounds; t++) this.right[t]!++;
    }
  }

  private fill(): void {
    const { detail, pieces } = this;
    for (const [i, line] of detail.matrix.entries()) {
      for (const [j, want] of line.entries()) {
        for (let piece = 0; piece < pieces; piece++) {
          this.entries.set(this.key(i * pieces + piece, j * pieces + piece), { changes: [], want, settled: 0 });
        }
      }
    }
    for (const [time, list] of detail.partial.entries()) {
      for (const [row, column, value] of list) this.entries.get(this.key(row, column))?.changes.push({ time, value });
    }
    for (const e of this.entries.values()) {
      const last = e.changes.at(-1) ?? { time: 0, value: "0" };
      e.settled = last.value === e.want ? last.time : Infinity;
    }
  }

  private key(row: number, column: number): number {
    return row * this.plan.info.columns + column;
  }

  /** Rows and columns of A. */
  get height(): number {
    return this.detail.matrix.length;
  }
  get width(): number {
    return this.detail.matrix[0]?.length ?? 0;
  }

  owner(column: number): number {
    return this.owners[column]!.processor;
  }

  resultSlot(column: number): number {
    return this.owners[column]!.slot;
  }

  /** How many entries are those of A once so many rounds have passed. */
  rightAt(time: number): number {
    return this.right[time]!;
  }

  /** The transfer matrix of one piece of all packets. Cells that do not change stay the same objects: the page leaves them alone. */
  cells(time: number, piece: number): Cell[][] {
    return this.table(piece, (row, column, entry) => {
      const now = lastChange(entry, time);
      const [state, value, fresh] = [this.state(row, column, entry, time), now?.value ?? "0", time > 0 && now?.time === time];
      const { cell } = entry;
      if (cell && cell.state === state && cell.value === value && cell.fresh === fresh) return cell;
      return (entry.cell = { row, column, state, value, fresh });
    });
  }

  /** A, as it applies to each piece. */
  given(piece: number): Cell[][] {
    return this.table(piece, (row, column, entry) => ({ row, column, state: "given", value: entry.want, fresh: false }));
  }

  private table(piece: number, cell: (row: number, column: number, entry: Entry) => Cell): Cell[][] {
    return Array.from({ length: this.height }, (_, i) =>
      Array.from({ length: this.width }, (_, j) => {
        const [row, column] = [i * this.pieces + piece, j * this.pieces + piece];
        return cell(row, column, this.entries.get(this.key(row, column))!);
      }),
    );
  }

  private state(row: number, column: number, entry: Entry, time: number): CellState {
    if (entry.settled <= time) return "final";
    if (time === this.rounds) return "wrong";
    if (lastChange(entry, time)) return "partial";
    return (this.heard[this.owner(column)]!.get(row) ?? Infinity) <= time ? "heard" : "empty";
  }

  /** An entry of A. */
  want(row: number, column: number): string {
    return this.entries.get(this.key(row, column))!.want;
  }

  /** When an entry is as in A; undefined if never. */
  settled(row: number, column: number): number | undefined {
    const { settled } = this.entries.get(this.key(row, column))!;
    return settled === Infinity ? undefined : settled;
  }

  /** What a result would be, were all that is still to come zero. */
  soFar(column: number, time: number): Sum {
    const sum: Sum = { rows: [], coefs: [] };
    for (let row = column % this.pieces; row < this.plan.info.rows; row += this.pieces) {
      const value = lastChange(this.entries.get(this.key(row, column))!, time)?.value ?? "0";
      if (value === "0") continue;
      sum.rows.push(row);
      sum.coefs.push(value);
    }
    return sum;
  }

  /** What a processor has by a time, in the order in which it came. */
  memory(processor: number, time: number): Arrival[] {
    const arrivals: Arrival[] = [];
    for (const [index, slot] of this.detail.memory[processor]!.entries()) {
      const came = timeOf(slot);
      if (came > time) continue;
      if (arrivals.at(-1)?.time !== came) arrivals.push({ time: came, slots: [] });
      arrivals.at(-1)!.slots.push({ index, slot });
    }
    return arrivals;
  }
}

/** What changed an entry last, of what came by a time. */
function lastChange(entry: Entry, time: number): Change | undefined {
  let last: Change | undefined;
  for (const c of entry.changes) if (c.time <= time) last = c;
  return last;
}

/** Slots computed before round t follow from what came in round t-1. */
function timeOf(slot: Slot): number {
  if (slot.kind === "input") return 0;
  return slot.kind === "received" ? slot.round + 1 : slot.round;
}

function firstHeard(memory: Slot[]): Map<number, number> {
  const first = new Map<number, number>();
  for (const slot of memory) {
    for (const row of slot.rows) first.set(row, Math.min(first.get(row) ?? Infinity, timeOf(slot)));
  }
  return first;
}

/** A sum in symbols, such as "7·x0 + x3"; of long ones, unless all is asked for, the beginning. */
export function combination(sum: Sum, names: string[], most = Infinity): string {
  if (sum.rows.length === 0) return "0";
  const shown = sum.rows.length > most + 2 ? most : sum.rows.length;
  const rest = sum.rows.length - shown;
  return termsOf(sum, names, shown).join(" + ") + (rest > 0 ? ` + … ${rest} more` : "");
}

/** A number in a cell: the middle of long ones is left out. */
export function shortened(value: string): string {
  return value.length <= 5 ? value : `${value.slice(0, 2)}…${value.slice(-2)}`;
}
