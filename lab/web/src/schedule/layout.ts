// The places of everything in a drawing: processors are columns, rounds are bands. The
// drawing is a cylinder, cut open at the sides: arrows that leave at one come in at the other.
import { textWidth } from "../lib/text";
import { seconds } from "../lib/format";
import { dashes, portColour } from "../lib/ports";
import { busy, labelsIn, packetsIn, subjectOf, type Arrow, type Schedule } from "./model";
import type { Pace } from "./pace";
import { aboutPieces, pieceColour, piecesOf } from "./pieces";
import { fit, shorten } from "./words";

export interface Point {
  x: number;
  y: number;
}
export type Segment = [from: Point, to: Point];

export interface Drawn {
  arrow: Arrow;
  /** Two where it goes around the side, and more where it is a curve. */
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
  anchor: "start" | "end";
  colour: string;
  text: string;
  /** What it is made of, each a stripe below it. */
  packets?: number[];
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
  /** Of the stripes of what a processor has heard, above its result; 0 where these have no room. */
  memory: number;
  /** Every so many processors have their number. */
  tick: number;
  /** By processor; "" where there is no room. */
  inputs: string[];
  outputs: string[];
  /** Of ribbons: pixels for an element, and the processor whose they are. */
  unit: number;
  focus: number | null;
  /** As high as rounds are long: ribbons then leave and arrive one after the other. */
  timed: boolean;
  x(processor: number): number;
}

export const sizes = { title: 12, label: 12, side: 12, line: 14 };

const margin = 1;
const narrow = 520;
const narrowest = 4;
const widest = 120;
const manyRounds = 24;

/** With a pace, bands are as high as their rounds are long. What a processor in focus sends and gets leaves it side by side. */
export function layout(s: Schedule, available: number, pace: Pace | null = null, focus: number | null = null): Layout {
  const k = s.plan.info.processors;
  const withLabels = !s.dense && s.plan.info.pieces === 1 && !pace;
  const above = available < narrow; // titles then stand above the arrows
  const titles = above ? 0 : 14 + Math.max(60, ...s.rounds.flatMap((_, t) => title(s, t, pace).map((line) => textWidth(line, sizes.title))));
  const gutter = !s.dense ? 20 + textWidth(`from ${k - 1}`, sizes.side) : 14;
  const column = Math.min(widest, Math.max(narrowest, (available - titles - 2 * gutter - margin) / k));
  const left = titles + gutter;
  const right = left + k * column;
  const radius = Math.min(11, Math.max(2, 0.36 * column));
  const tick = [1, 2, 4, 8, 16, 32].find((n) => n * column >= (n === 1 && radius >= 9 ? 20 : textWidth(String(k), 12) + 8)) ?? 32;
  const names = column >= textWidth(`y${k - 1}`, 12) + 4;
  const top = Math.ceil(30 + radius);
  const { pieces } = s.plan.info;
  const bar = pieces > 1 && column - 8 >= 2 * pieces ? Math.min(column - 8, 12 * pieces) : 0;
  const memory = s.detail && !s.dense && pieces === 1 && column - 8 >= 2.5 * s.plan.info.rows ? Math.min(column - 8, 10 * s.plan.info.rows) : 0;
  const named = (kind: "spread" | "gather") => Array.from({ length: k }, (_, i) => (names && s.detail ? fit(subjectOf(s.detail, kind, i), 12, column) : ""));
  const l: Layout = {
    width: Math.floor(right + gutter + margin), height: 0, titles, left, right, column, radius, top, bottom: 0, bands: [], bar, memory, tick, focus, timed: pace !== null,
    unit: s.dense ? ribbonUnit(s, column) : 0,
    inputs: named("spread"), outputs: named("gather"),
    x: (processor) => r(left + (processor + 0.5) * column),
  };
  let y = Math.ceil(top + radius + 10 + (bar > 0 ? barHeight + 6 : 0));
  const perSecond = pace ? pixelsPerSecond(pace) : 0;
  for (const [t, list] of s.rounds.entries()) {
    const band = pace ? placeByTime(l, s, t, list, y, pace, perSecond, above) : place(l, s, t, list, y, withLabels, above);
    l.bands.push(band);
    y += band.height;
  }
  l.bottom = y + radius + 10 + (bar + memory > 0 ? barHeight + 6 : 0);
  l.height = l.bottom + radius + 24;
  return l;
}

export const barHeight = 7;
/** The height of stripes. */
export const stripe = 6;

/** The most that a processor sends or gets in a round fills a bundle; the longest message fits a column. */
function ribbonUnit(s: Schedule, column: number): number {
  const all = s.rounds.map((list) => list.map((a) => a.message));
  const most = (end: "src" | "dst") => Math.max(1, ...all.flatMap((list) => [...busy(list, end, (m) => m.slots.length).values()]));
  const longest = Math.max(1, ...all.flat().map((m) => m.slots.length));
  return Math.min(bundle / Math.max(most("src"), most("dst")), Math.max(4, 0.7 * column) / longest);
}

const bundle = 110;

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

function placeByTime(l: Layout, s: Schedule, round: number, list: Arrow[], y: number, pace: Pace, perSecond: number, above: boolean): Band {
  const start = pace.starts[round]!;
  const head = above ? 24 : 0; // for the title
  const height = head + (pace.starts[round + 1]! - start) * perSecond;
  const all = title(s, round, pace);
  const lines = (above ? [all.join(" · ")] : all).slice(0, Math.max(0, Math.floor((height - 8) / 15)));
  const band: Band = { y, height, departs: y + head, arrives: y + height, title: lines, arrows: [], labels: [], sides: [] };
  const at = (time: number) => y + head + (time - start) * perSecond;
  band.arrows = list.map((a) => {
    const [leaves, arrives] = pace.messages.get(a.id)!;
    return draw(l, { ...band, departs: at(leaves), arrives: at(arrives) }, a, s);
  });
  if (!s.dense) band.sides = sides(l, band);
  return band;
}

function place(l: Layout, s: Schedule, round: number, list: Arrow[], y: number, withLabels: boolean, above: boolean): Band {
  const far = s.dense ? 240 : l.column * Math.max(0, ...list.map((a) => Math.abs(a.span)));
  // Steep enough to be followed by the eye.
  const [steep, most] = l.column < 20 ? [0.34, 150] : [0.2, 120];
  const drop = s.rounds.length > manyRounds ? 34 : Math.min(most, Math.max(46, 30 + steep * far));
  const under = s.dense ? 18 : 6; // where ribbons have labels at their ends, too
  const lines = title(s, round, null);
  const departs = y + (withLabels || s.dense ? 8 + sizes.line : 17) + (withLabels && s.detail ? stripe + 3 : 0) + (above ? (l.bar > 0 ? 22 : 15) : 0);
  const least = above || s.rounds.length > manyRounds ? 0 : 8 + 15 * lines.length + 10;
  const height = Math.ceil(Math.max(least, departs - y + drop + under));
  const band: Band = { y, height, departs, arrives: y + height + 1 - under, title: above ? [lines.join(" · ")] : lines, arrows: [], labels: [], sides: [] };
  band.arrows = list.map((a) => draw(l, band, a, s));
  if (withLabels) band.labels = labelsOf(l, s, band.arrows, Math.max(l.column - 8, Math.min(2 * l.column - 10, 130), 84));
  if (!s.dense) band.sides = sides(l, band);
  return band;
}

function draw(l: Layout, band: Band, arrow: Arrow, s: Schedule): Drawn {
  const { src, dst, slots, port } = arrow.message;
  const { pieces: cutIn } = s.plan.info;
  const carries = cutIn > 1 ? piecesOf(labelsIn(s, arrow.message)) : [];
  if (s.dense) {
    const wide = Math.max(0.8, l.unit * slots.length);
    const colour = l.focus === src ? "var(--sent)" : l.focus === dst ? "var(--got)" : cutIn > 1 ? "var(--soft)" : portColour(port);
    if (l.timed) {
      const [from, to] = [{ x: l.x(src), y: band.departs }, { x: l.x(dst), y: band.arrives }];
      return { arrow, pieces: [[from, to]], wide, colour, carries, path: `M${r(from.x)} ${r(from.y)}L${r(to.x)} ${r(to.y)}` };
    }
    const [from, to] = [{ x: l.x(src) + beside(l, s, arrow, "src"), y: band.departs }, { x: l.x(dst) + beside(l, s, arrow, "dst"), y: band.arrives }];
    return { arrow, pieces: curve(from, to), wide, colour, carries, path: `M${r(from.x)} ${r(from.y)}C${r(from.x)} ${r((from.y + to.y) / 2)} ${r(to.x)} ${r((from.y + to.y) / 2)} ${r(to.x)} ${r(to.y)}` };
  }
  const colour = cutIn === 1 ? portColour(port) : carries.length === 1 ? pieceColour(carries[0]!, cutIn) : "var(--soft)";
  const wide = Math.min(3.2, 1.1 + 0.45 * Math.log2(slots.length)) * Math.min(1, 0.25 + l.column / 24);
  const pieces = segments(l, band, arrow.span, src, dst);
  return { arrow, pieces, wide, colour, dashes: cutIn > 1 ? undefined : dashes(port), carries, path: pathOf(pieces, l.column < 14 ? 3.6 : 5 + wide) };
}

/** How far beside the middle of the processor in focus one of its ribbons begins or ends: they lie in the order of the others. */
function beside(l: Layout, s: Schedule, arrow: Arrow, end: "src" | "dst"): number {
  if (arrow.message[end] !== l.focus) return 0;
  const other = end === "src" ? "dst" : "src";
  let [before, all] = [0, 0];
  for (const { message: m } of s.rounds[arrow.round]!) {
    if (m[end] !== l.focus) continue;
    all += m.slots.length;
    if (m[other] < arrow.message[other]) before += m.slots.length;
  }
  return l.unit * (before + arrow.message.slots.length / 2 - all / 2);
}

/** From a point to one below: it leaves and comes downwards. */
function curve(from: Point, to: Point): Segment[] {
  const at = (t: number): Point => {
    const smooth = t * t * (3 - 2 * t);
    return { x: from.x + smooth * (to.x - from.x), y: from.y + (1.5 * t - 1.5 * t * t + t * t * t) * (to.y - from.y) };
  };
  return Array.from({ length: bends }, (_, i) => [at(i / bends), at((i + 1) / bends)]);
}

const bends = 8;

function segments(l: Layout, band: Band, span: number, src: number, dst: number): Segment[] {
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

/**
 * A label stands at the tail of its arrow, on the side to which the arrow goes or, where there
 * is no room, on the other. Where it would touch another one, it is left out.
 */
export function labelsOf(l: Layout, s: Schedule, arrows: Drawn[], wide: number): Text[] {
  const placed: Text[] = [];
  for (const d of arrows) {
    const labels = labelsIn(s, d.arrow.message);
    // Of several sums one is named: the next would stand at the tail of another arrow.
    const most = labels.length > 1 && arrows.length > 1 ? Math.min(wide, Math.max(l.column - 8, 84)) : wide;
    const [line = ""] = s.plan.info.pieces > 1 ? [aboutPieces(labels)] : [shorten(labels, d.arrow.message.slots.length, sizes.label, most)];
    const { x, y } = d.pieces[0]![0];
    const packets = s.detail && s.plan.info.pieces === 1 ? packetsIn(s.detail, d.arrow.message) : [];
    const sides = d.arrow.span < 0 ? (["end", "start"] as const) : (["start", "end"] as const);
    for (const anchor of sides) {
      const label: Text = { id: d.arrow.id, x: x + (anchor === "end" ? -4 : 4), y: y - 4 - (packets.length > 0 ? stripe + 3 : 0), anchor, colour: d.colour, text: line, packets };
      const [left, right] = ends(label);
      if (left < l.titles || right > l.width || placed.some((o) => touch(label, o))) continue;
      placed.push(label);
      break;
    }
  }
  return placed;
}

function ends(t: Text): [left: number, right: number] {
  const w = textWidth(t.text, sizes.label, true);
  return t.anchor === "end" ? [t.x - w, t.x] : [t.x, t.x + w];
}

export function touch(a: Text, b: Text): boolean {
  const [[left, right], [from, to]] = [ends(a), ends(b)];
  return Math.abs(a.y - b.y) < sizes.line && left < to + 5 && from < right + 5;
}

/** As far as there is room. */
function sides(l: Layout, band: Band): Text[] {
  const texts: Text[] = [];
  if (band.arrows.length > 6 * l.inputs.length) return texts; // nobody finds theirs
  const add = ({ arrow: { id }, carries, colour: own }: Drawn, at: Point, text: string) => {
    const colour = carries.length > 0 ? "var(--soft)" : own;
    const anchor = at.x === l.left ? "end" : "start";
    const y = at.y + 3;
    const inside = y > band.y + 8 && y < band.y + band.height;
    // Labels of the outer processors reach into the gutters, as far down as the tails.
    const free = y - sizes.side > band.departs - 5 && texts.every((t) => t.anchor !== anchor || Math.abs(t.y - y) >= sizes.side);
    if (inside && free) texts.push({ id, x: at.x + (anchor === "end" ? -4 : 4), y, anchor, colour, text });
  };
  for (const d of band.arrows) {
    const { pieces, arrow: { message } } = d;
    if (pieces.length < 2) continue;
    add(d, pieces[0]![1], `to ${message.dst}`);
    add(d, pieces[1]![0], `from ${message.src}`);
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
export function packetAt({ pieces }: Drawn, part: number): Point {
  const [top, bottom] = [pieces[0]![0].y, pieces.at(-1)![1].y];
  const y = top + part * (bottom - top);
  const [a, b] = pieces.find((p) => y <= p[1].y) ?? pieces.at(-1)!;
  const along = (y - a.y) / (b.y - a.y || 1);
  return { x: a.x + along * (b.x - a.x), y };
}
