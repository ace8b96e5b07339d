// Where the spans of a run lie: a row for each rank, and one for each of its processors
// where it has several. Spans that overlap lie in strips below each other.
import type { Run } from "../lib/api";
import { isMessage, type Shown } from "./rounds";
import { processors } from "./words";

export interface Row {
  rank: number;
  /** The processors it is about. */
  first: number;
  last: number;
  label: string;
  y: number;
  height: number;
  strips: Strip[];
  /** All of the row, by their start. */
  spans: Shown[];
}

export interface Strip {
  y: number;
  height: number;
  /** By their start. Those of a port overlap where one begins before the other is seen to be there. */
  spans: Shown[];
  /** The latest end of the spans up to each. */
  reach: number[];
}

export interface Layout {
  rows: Row[];
  height: number;
}

/** Ports is how many messages a processor may send at a time, 0 if only the spans tell. */
export function arrange(run: Run, spans: Shown[], ports: number): Layout {
  const rows: Row[] = [];
  const lanes = spans.some((s) => s.row === 2) ? 2 : 1; // odd segments are in the second one
  for (const s of spans) if (isMessage(s)) ports = Math.max(ports, s.port + 1);
  const place = new Map<string, Row>(); // by rank, or rank and processor
  for (const [rank, [first, last]] of run.processors.entries()) {
    const add = (key: string, first: number, last: number, label: string) => {
      const row: Row = { rank, first, last, label, y: 0, height: 0, strips: [], spans: [] };
      rows.push(row);
      place.set(key, row);
    };
    add(`${rank}`, first, last, first > last ? `rank ${rank}` : processors(first, last)); // first > last: no span tells
    if (ports === 0 || first === last) continue;
    for (let k = first; k <= last; k++) add(`${rank}/${k}`, k, k, `P${k}`);
  }
  for (const s of spans) {
    const row = (isMessage(s) && place.get(`${s.rank}/${s.first}`)) || place.get(`${s.rank}`);
    row?.spans.push(s);
  }
  const packed = rows.map((row) => {
    row.spans.sort((a, b) => a.start - b.start || b.length - a.length);
    return pack(row.spans, lanes, ports);
  });
  // Work above, sends below it, then receives: each has as many strips in every row that has any.
  const counts = [...work, ...messages].map((_, i) => (i < work.length ? Math.max(...packed.map((p) => p[i]!.length)) : lanes * ports));
  const has = (row: Row, i: number) => (i < work.length ? place.get(`${row.rank}`) === row : row.first === row.last);
  const most = Math.max(1, ...rows.map((row) => counts.reduce((n, c, i) => n + (has(row, i) ? c : 0), 0)));
  const gap = rows.length > 24 ? 3 : 6;
  const height = Math.max(3, Math.min(13, Math.floor((680 / rows.length - gap) / most)));
  let y = 0;
  for (const [n, row] of rows.entries()) {
    const lists = counts.flatMap((count, i) => (has(row, i) ? Array.from({ length: count }, (_, k) => packed[n]![i]![k] ?? []) : []));
    row.y = y;
    row.height = Math.max(12, lists.length * height + gap);
    const top = y + (row.height - lists.length * height) / 2;
    row.strips = lists.map((spans, k) => ({ y: top + k * height, height: height > 4 ? height - 1 : height, spans, reach: reach(spans) }));
    y += row.height;
  }
  return { rows, height: y };
}

/** The strips of each layer: work, sends, receives. */
function pack(spans: Shown[], lanes: number, ports: number): Shown[][][] {
  const own: Shown[][][] = [...work, ...messages].map(() => []);
  for (const s of spans) {
    const layer = isMessage(s) ? work.length + messages.indexOf(s.kind) : work.findIndex((rows) => rows.includes(s.row));
    const strip = isMessage(s) ? (s.segment % lanes) * ports + s.port : 0;
    (own[layer]![strip] ??= []).push(s);
  }
  return own;
}

const work = [[0, 1], [2], [3], [4]]; // rows of the trace; what is in one does not overlap
const messages: Shown["kind"][] = ["send", "receive"];

function reach(spans: Shown[]): number[] {
  let most = -Infinity;
  return spans.map((s) => (most = Math.max(most, s.end)));
}

/** The first of the spans of a strip that ends at t or later. */
export function firstAfter({ reach }: Strip, t: number): number {
  let low = 0;
  let high = reach.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reach[middle]! < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row at a height. */
export function rowAt(layout: Layout, y: number): number {
  return layout.rows.findIndex((row) => y >= row.y && y < row.y + row.height);
}

/** The span at a time and a height; one that is less than `near` away will do. */
export function spanAt(row: Row, t: number, y: number, near: number): Shown | undefined {
  const strip = row.strips.find((s) => y >= s.y - 0.5 && y < s.y + s.height + 1.5);
  if (!strip) return undefined;
  let found: Shown | undefined;
  let by = Infinity; // how far it is away
  for (let i = firstAfter(strip, t - near); i < strip.spans.length; i++) {
    const s = strip.spans[i]!;
    if (s.start > t + near) break;
    const away = Math.max(s.start - t, t - s.end, 0);
    if (away <= near && away <= by) [found, by] = [s, away]; // the later one lies on top
  }
  return found;
}
