// The places of everything in a drawing: processors are columns, rounds are bands. The
// drawing is a cylinder, cut open at the sides: arrows that leave at one come in at the other.
import { textWidth } from "../lib/text";
import { seconds } from "../lib/format";
import { dashes, portColour } from "../lib/ports";
import { carried, treeSubject, type Arrow, type Schedule } from "./model";
import type { Pace } from "./pace";
import { carriedPieces, pieceColour } from "./pieces";
import { fit, shorten } from "./words";

export interface Point {
  x: number;
  y: number;
}
export type Segment = [from: Point, to: Point];

export interface Drawn {
  arrow: Arrow;
  /** Two where it goes around the side. */
  pieces: Segment[];
  path: string;
  wide: number;
  colour: string;
  dashes?: string;
  /** That it carries, of a packet that is cut. */
  carries: number[];
}

export interface Text {
  /** Of the arrow that it belongs to. */
  id: string;
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
  port: number;
  lines: string[];
}

export interface Band {
  y: number;
  height: number;
  departs: number;
  arrives: number;
  title: string[];
  arrows: Drawn[];
  labels: Text[];
  /** Where arrows go that leave, and where those come from that come in. */
  sides: Text[];
}

export interface Layout {
  width: number;
  height: number;
  /** The width of the rounds' titles, at the left. */
  titles: number;
  left: number;
  right: number;
  column: number;
  radius: number;
  top: number;
  bottom: number;
  bands: Band[];
  /** Of the bars of pieces beside the processors; 0 where there are none. */
  bar: number;
  /** Every so many processors have their number. */
  tick: number;
  /** By processor; "" where there is no room. */
  inputs: string[];
  outputs: string[];
  x(processor: number): number;
}

export const sizes = { title: 12, label: 11, side: 10, line: 13 };

const margin = 1;
const labelled = 16; // with more processors only some arrows have labels
const mostRows = 7; // of labels above the arrows of a round; where there are more, nobody finds theirs
const narrowest = 7;
const widest = 120;
const manyRounds = 24;

/** With a pace, bands are as high as their rounds are long. */
export function layout(s: Schedule, available: number, pace: Pace | null = null): Layout {
  const few = s.plan.info.processors <= labelled && s.plan.info.pieces === 1 && !pace;
  let first = arrange(s, available, 0, 0, few, pace);
  if (first.bands.some((b) => b.labels.some((t) => b.departs - t.y > 5 + mostRows * sizes.line))) first = arrange(s, available, 0, 0, false, pace);
  // Labels of the outer processors may stick out: then that gutter becomes wider.
  const reach = (anchor: Text["anchor"]) =>
    Math.max(0, ...first.bands.flatMap((b) => b.labels.filter((t) => t.anchor === anchor).map((t) => over(first, t))));
  const [left, right] = [reach("end"), reach("start")];
  return left + right > 0 ? arrange(s, available, left, right, true, pace) : first;
}

function over(l: Layout, t: Text): number {
  const w = Math.max(...t.lines.map((line) => textWidth(line, sizes.label, true)));
  return t.anchor === "start" ? t.x + w - l.width : l.titles - (t.x - w);
}

function arrange(s: Schedule, available: number, wideLeft: number, wideRight: number, withLabels: boolean, pace: Pace | null): Layout {
  const k = s.plan.info.processors;
  const titles = 14 + Math.max(60, ...s.rounds.flatMap((_, t) => title(s, t, pace).map((line) => textWidth(line, sizes.title))));
  const gutter = k <= labelled ? 20 + textWidth(`from ${k - 1}`, sizes.side) : 14;
  const column = Math.min(widest, Math.max(narrowest, (available - titles - 2 * gutter - wideLeft - wideRight - margin) / k));
  const left = titles + gutter + wideLeft;
  const right = left + k * column;
  const radius = Math.min(11, Math.max(2, 0.36 * column));
  const tick = [1, 2, 4, 8, 16, 32].find((n) => n * column >= (n === 1 && radius >= 9 ? 20 : textWidth(String(k), 10.5) + 8)) ?? 32;
  const names = column >= textWidth(`y${k - 1}`, 12) + 4;
  const top = Math.ceil(30 + radius);
  const { pieces } = s.plan.info;
  const bar = pieces > 1 && column - 8 >= 2 * pieces ? Math.min(column - 8, 12 * pieces) : 0;
  const l: Layout = {
    width: Math.floor(right + gutter + wideRight + margin), height: 0, titles, left, right, column, radius, top, bottom: 0, bands: [], bar, tick,
    inputs: s.detail.inputs.map((_, i) => (names ? fit(treeSubject(s.detail, "spread", i), 12, column) : "")),
    outputs: s.detail.outputs.map((_, i) => (names ? fit(treeSubject(s.detail, "gather", i), 12, column) : "")),
    x: (processor) => r(left + (processor + 0.5) * column),
  };
  let y = Math.ceil(top + radius + 10 + (bar > 0 ? barHeight + 6 : 0));
  const perSecond = pace ? pixelsPerSecond(pace) : 0;
  for (const [t, list] of s.rounds.entries()) {
    const band = pace ? placeByTime(l, s, t, list, y, pace, perSecond) : place(l, s, t, list, y, withLabels);
    l.bands.push(band);
    y += band.height;
  }
  l.bottom = y + radius + 10 + (bar > 0 ? barHeight + 6 : 0);
  l.height = l.bottom + radius + 24;
  return l;
}

export const barHeight = 7;

function title(s: Schedule, round: number, pace: Pace | null): string[] {
  const phase = s.phases[round] ?? "";
  const last = pace ? `${seconds(pace.starts[round]!)} – ${seconds(pace.starts[round + 1]!)}` : s.patterns[round]!;
  return [`round ${round}`, phase, last].filter((line) => line !== "");
}

/** So many that the shortest round can be seen, as far as the longest does not get too long. */
function pixelsPerSecond({ starts }: Pace): number {
  const all = starts.at(-1)! || 1;
  const shortest = Math.min(...starts.slice(1).map((end, t) => end - starts[t]!).filter((d) => d > 0), all);
  return Math.min(2400, Math.max(480, (64 * all) / shortest)) / all;
}

function placeByTime(l: Layout, s: Schedule, round: number, list: Arrow[], y: number, pace: Pace, perSecond: number): Band {
  const start = pace.starts[round]!;
  const height = (pace.starts[round + 1]! - start) * perSecond;
  const lines = title(s, round, pace).slice(0, Math.floor((height - 8) / 15));
  const band: Band = { y, height, departs: y, arrives: y + height, title: lines, arrows: [], labels: [], sides: [] };
  const at = (time: number) => y + (time - start) * perSecond;
  band.arrows = list.map((a) => {
    const [leaves, arrives] = pace.messages.get(a.id)!;
    return draw(l, { ...band, departs: at(leaves), arrives: at(arrives) }, a, s);
  });
  if (s.plan.info.processors <= labelled) band.sides = sides(l, band);
  return band;
}

function place(l: Layout, s: Schedule, round: number, list: Arrow[], y: number, withLabels: boolean): Band {
  const labels = withLabels ? tags(l, s, list) : [];
  const rows = Math.max(0, ...labels.map((t) => t.row + t.lines.length));
  const far = l.column * Math.max(0, ...list.map((a) => Math.abs(a.span)));
  // Steep enough to be followed by the eye.
  const [steep, most] = l.column < 20 ? [0.34, 150] : [0.2, 120];
  const drop = s.rounds.length > manyRounds ? 34 : Math.min(most, Math.max(46, 30 + steep * far));
  const departs = y + (labels.length > 0 ? 8 + sizes.line * rows : 17);
  const least = s.rounds.length > manyRounds ? 0 : 8 + 15 * title(s, round, null).length + 10;
  const height = Math.ceil(Math.max(least, departs - y + drop + 6));
  const arrives = y + height - 5;
  const band: Band = { y, height, departs, arrives, title: title(s, round, null), arrows: [], labels: [], sides: [] };
  band.arrows = list.map((a) => draw(l, band, a, s));
  band.labels = labels.map((t) => ({
    id: t.id, x: t.x, y: departs - 5 - sizes.line * (t.row + t.lines.length - 1), anchor: t.anchor, port: t.port, lines: t.lines,
  }));
  if (s.plan.info.processors <= labelled) band.sides = sides(l, band);
  return band;
}

function draw(l: Layout, band: Band, arrow: Arrow, { plan, detail }: Schedule): Drawn {
  const { src, dst, slots, port } = arrow.message;
  const cut = plan.info.pieces > 1;
  const carries = cut ? carriedPieces(detail, arrow.message) : [];
  const colour = !cut ? portColour(port) : carries.length === 1 ? pieceColour(carries[0]!, plan.info.pieces) : "var(--soft)";
  const wide = Math.min(3.2, 1.1 + 0.45 * Math.log2(slots.length)) * Math.min(1, 0.25 + l.column / 24);
  const pieces = piecesOf(l, band, arrow.span, src, dst);
  return { arrow, pieces, wide, colour, dashes: cut ? undefined : dashes(port), carries, path: pathOf(pieces, l.column < 14 ? 3.6 : 5 + wide) };
}

function piecesOf(l: Layout, band: Band, span: number, src: number, dst: number): Segment[] {
  const from = { x: l.x(src), y: band.departs };
  const to = { x: l.x(dst), y: band.arrives };
  const end = from.x + span * l.column;
  if (end > l.left && end < l.right) return [[from, to]];
  const [out, into] = end <= l.left ? [l.left, l.right] : [l.right, l.left];
  const y = from.y + ((out - from.x) / (end - from.x)) * (to.y - from.y);
  return [[from, { x: out, y }], [{ x: into, y }, to]];
}

/** Lines, and a head at the end of the last. */
function pathOf(pieces: Segment[], head: number): string {
  const lines = pieces.map(([a, b]) => `M${r(a.x)} ${r(a.y)}L${r(b.x)} ${r(b.y)}`);
  const [a, b] = pieces.at(-1)!;
  const n = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [ux, uy] = [(b.x - a.x) / n, (b.y - a.y) / n];
  const [bx, by] = [b.x - head * ux, b.y - head * uy];
  const h = 0.42 * head;
  return `${lines.join("")}M${r(b.x)} ${r(b.y)}L${r(bx - h * uy)} ${r(by + h * ux)}L${r(bx + h * uy)} ${r(by - h * ux)}Z`;
}

/** To a tenth of a pixel. */
const r = (x: number) => Math.round(10 * x) / 10;

interface Tag {
  id: string;
  x: number;
  left: number;
  right: number;
  anchor: "start" | "end";
  port: number;
  lines: string[];
  /** Of the last line, counted upwards from the tails. */
  row: number;
}

/**
 * Labels stand at the tails of their arrows, on the side to which these go. Those of a port
 * and direction take turns in so few rows that they do not touch.
 */
function tags(l: Layout, s: Schedule, list: Arrow[]): Tag[] {
  const groups = new Map<string, Tag[]>();
  const wide = Math.max(l.column - 8, Math.min(2 * l.column - 10, 130), 84);
  for (const a of [...list].sort((a, b) => a.message.port - b.message.port || a.message.src - b.message.src)) {
    const { src, port } = a.message;
    const lines = shorten(carried(s.detail, a.message), 2, sizes.label, wide);
    const w = Math.max(...lines.map((line) => textWidth(line, sizes.label, true)));
    const back = a.span < 0;
    const x = l.x(src) + (back ? -5 : 5);
    const tag: Tag = { id: a.id, x, left: back ? x - w - 3 : x - 3, right: back ? x + 3 : x + w + 3, anchor: back ? "end" : "start", port, lines, row: 0 };
    const key = `${port} ${tag.anchor}`;
    groups.set(key, [...(groups.get(key) ?? []), tag]);
  }
  const placed: Tag[] = [];
  for (const group of groups.values()) {
    const high = Math.max(...group.map((t) => t.lines.length));
    let turns = 1;
    while (group.some((t, i) => i >= turns && touch(t, group[i - turns]!))) turns++;
    for (let base = 0; ; base++) {
      group.forEach((t, i) => (t.row = base + high * (i % turns)));
      if (!group.some((t) => placed.some((o) => touch(t, o) && o.row < t.row + t.lines.length && t.row < o.row + o.lines.length))) break;
    }
    placed.push(...group);
  }
  return placed;
}

function touch(a: Tag, b: Tag): boolean {
  return a.left < b.right && b.left < a.right;
}

/** As far as there is room. */
function sides(l: Layout, band: Band): Text[] {
  const texts: Text[] = [];
  if (band.arrows.length > 6 * l.inputs.length) return texts; // nobody finds theirs
  const add = ({ id, message: { port } }: Arrow, at: Point, text: string) => {
    const anchor = at.x === l.left ? "end" : "start";
    const y = at.y + 3;
    const inside = y > band.y + 8 && y < band.y + band.height;
    // Labels of the outer processors reach into the gutters, as far down as the tails.
    const free = y - sizes.side > band.departs - 5 && texts.every((t) => t.anchor !== anchor || Math.abs(t.y - y) >= sizes.side);
    if (inside && free) texts.push({ id, x: at.x + (anchor === "end" ? -4 : 4), y, anchor, port, lines: [text] });
  };
  for (const { arrow, pieces } of band.arrows) {
    if (pieces.length < 2) continue;
    add(arrow, pieces[0]![1], `to ${arrow.message.dst}`);
    add(arrow, pieces[1]![0], `from ${arrow.message.src}`);
  }
  return texts;
}

/** The arrow nearest to a point, if one is near. */
export function nearest(l: Layout, at: Point): Drawn | null {
  const band = l.bands.find((b) => at.y >= b.y && at.y < b.y + b.height);
  let best: Drawn | null = null;
  let least = 9;
  for (const d of band?.arrows ?? []) {
    for (const [a, b] of d.pieces) {
      const distance = distanceTo(a, b, at);
      if (distance < least) [best, least] = [d, distance];
    }
  }
  return best;
}

function distanceTo(a: Point, b: Point, p: Point): number {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const along = Math.max(0, Math.min(1, ((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(a.x + along * dx - p.x, a.y + along * dy - p.y);
}

/** Where the packet of a message is when part of its way, from 0 to 1, is behind it. */
export function packetAt(d: Drawn, part: number): Point {
  const [first, last] = [d.pieces[0]!, d.pieces.at(-1)!];
  const [top, bottom] = [first[0].y, last[1].y];
  const y = top + part * (bottom - top);
  const [a, b] = y <= first[1].y ? first : last;
  const along = (y - a.y) / (b.y - a.y || 1);
  return { x: a.x + along * (b.x - a.x), y };
}
