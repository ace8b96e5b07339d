// Where the spans of a run lie: a row for each rank, and one for each of its processors
// where it has several. Spans that overlap lie in strips below each other.
import type { Run, Span } from "../lib/api";
import { isMessage } from "./rounds";
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
  spans: Span[];
}

export interface Strip {
  y: number;
  height: number;
  /** By their start; each ends before the next one starts, except in the last strip of many. */
  spans: Span[];
}

export interface Layout {
  rows: Row[];
  height: number;
}

const mostStrips = 4; // of sends, and of receives

export function arrange(run: Run): Layout {
  const rows: Row[] = [];
  const messages = run.spans.some(isMessage);
  const place = new Map<string, Row>(); // by rank, or rank and processor
  for (const [rank, [first, last]] of run.processors.entries()) {
    const add = (key: string, first: number, last: number, label: string) => {
      const row: Row = { rank, first, last, label, y: 0, height: 0, strips: [], spans: [] };
      rows.push(row);
      place.set(key, row);
    };
    add(`${rank}`, first, last, first > last ? `rank ${rank}` : processors(first, last)); // first > last: no span tells
    if (!messages || first === last) continue;
    for (let k = first; k <= last; k++) add(`${rank}/${k}`, k, k, `P${k}`);
  }
  for (const s of run.spans) {
    const row = (isMessage(s) && place.get(`${s.rank}/${s.first}`)) || place.get(`${s.rank}`);
    row?.spans.push(s);
  }
  const packed = rows.map((row) => {
    row.spans.sort((a, b) => a.start - b.start || b.length - a.length);
    return strips(row.spans);
  });
  const most = packed.reduce((n, p) => Math.max(n, p.length), 1);
  const gap = rows.length > 24 ? 3 : 6;
  const height = Math.max(3, Math.min(13, Math.floor((620 / rows.length - gap) / most)));
  let y = 0;
  for (const [i, row] of rows.entries()) {
    row.y = y;
    row.height = Math.max(12, packed[i]!.length * height + gap);
    const top = y + (row.height - packed[i]!.length * height) / 2;
    row.strips = packed[i]!.map((spans, n) => ({ y: top + n * height, height: height > 4 ? height - 1 : height, spans }));
    y += row.height;
  }
  return { rows, height: y };
}

/** Work above, sends below it, then receives. */
function strips(spans: Span[]): Span[][] {
  const work = [[0, 1], [2], [3], [4]].map((rows) => spans.filter((s) => rows.includes(s.row)));
  return [
    ...work.filter((list) => list.length > 0),
    ...pack(spans.filter((s) => s.kind === "send")),
    ...pack(spans.filter((s) => s.kind === "receive")),
  ];
}

function pack(spans: Span[]): Span[][] {
  const lines: Span[][] = [];
  const ends: number[] = [];
  for (const s of spans) {
    let n = ends.findIndex((end) => end <= s.start);
    if (n < 0) n = Math.min(lines.length, mostStrips - 1);
    (lines[n] ??= []).push(s);
    ends[n] = Math.max(ends[n] ?? 0, s.start + s.length);
  }
  return lines;
}

/** The first of the spans of a strip that may end after t. */
export function firstAfter(spans: Span[], t: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const s = spans[middle]!;
    if (s.start + s.length < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row at a height. */
export function rowAt(layout: Layout, y: number): number {
  return layout.rows.findIndex((row) => y >= row.y && y < row.y + row.height);
}

/** The span at a time and a height; one that is less than `near` away will do. */
export function spanAt(row: Row, t: number, y: number, near: number): Span | undefined {
  const strip = row.strips.find((s) => y >= s.y - 0.5 && y < s.y + s.height + 1.5);
  if (!strip) return undefined;
  let found: Span | undefined;
  for (let i = Math.max(0, firstAfter(strip.spans, t - near) - 1); i < strip.spans.length; i++) {
    const s = strip.spans[i]!;
    if (s.start > t + near) break;
    if (s.start <= t && t <= s.start + s.length) return s;
    if (s.start + s.length >= t - near) found ??= s;
  }
  return found;
}
