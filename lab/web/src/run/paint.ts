// Draws a timeline on canvases: SVG would not keep up with ten thousand spans.
import type { ModelRound } from "../lib/api";
import { seconds } from "../lib/format";
import { firstAfter, type Layout, type Row } from "./layout";
import { isMessage, type Measured, type Shown } from "./rounds";
import { type Kind, title } from "./words";

/** What part of the time is seen. */
export interface Window {
  from: number;
  to: number;
}

export type Fill = "plain" | "hatched" | "dotted" | "open";

/** Colour and pattern of each kind, for the legend as well. */
export const styles: Record<Kind, { colour: string; fill: Fill }> = {
  code: { colour: "--port-2", fill: "plain" },
  wait: { colour: "--faint", fill: "hatched" },
  settle: { colour: "--faint", fill: "dotted" },
  send: { colour: "--port-0", fill: "plain" },
  receive: { colour: "--port-1", fill: "open" },
  observe: { colour: "--port-3", fill: "plain" },
  check: { colour: "--port-3", fill: "hatched" },
  agree: { colour: "--port-5", fill: "hatched" },
  plan: { colour: "--port-5", fill: "open" },
  compile: { colour: "--port-5", fill: "plain" },
  read: { colour: "--port-6", fill: "open" },
  write: { colour: "--port-6", fill: "plain" },
  turn: { colour: "--faint", fill: "open" },
};

/** The tracks above the rows. */
export const head = { axis: 22, model: 22, measured: 22, most: 3 } as const;

export interface Track {
  start: number;
  end: number;
  text: string;
  line: number;
}

/** The rounds of the model, one after the other from when the first message began. */
export function modelTrack(model: ModelRound[], start: number): Track[] {
  let t = start;
  return model.map((m, round) => ({ start: t, end: (t += m.seconds), text: `${round}`, line: 0 }));
}

/** The measured rounds. Where one begins before another has ended they lie below each other. */
export function measuredTrack(measured: Measured): Track[] {
  const ends: number[] = [];
  return measured.bars.map((bar) => {
    let line = ends.findIndex((end) => end <= bar.start);
    if (line < 0) line = Math.min(ends.length, head.most - 1);
    ends[line] = Math.max(ends[line] ?? 0, bar.end);
    return { start: bar.start, end: bar.end, text: measured.segments > 1 ? `${bar.round} of segment ${bar.segment}` : `${bar.round}`, line };
  });
}

export function lines(tracks: Track[]): number {
  return tracks.reduce((n, t) => Math.max(n, t.line + 1), 0);
}

/** A Brush draws on a canvas in the page's colours, in CSS pixels. */
export class Brush {
  readonly context: CanvasRenderingContext2D;
  private readonly css: CSSStyleDeclaration;
  private readonly fills = new Map<string, string | CanvasPattern>();
  private readonly colours = new Map<string, string>();
  private readonly scale: number;

  constructor(
    canvas: HTMLCanvasElement,
    readonly width: number,
    readonly height: number,
  ) {
    this.context = canvas.getContext("2d")!;
    this.css = getComputedStyle(canvas);
    this.scale = window.devicePixelRatio || 1;
    const w = Math.round(width * this.scale);
    const h = Math.round(height * this.scale);
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.textBaseline = "middle";
  }

  colour(token: string): string {
    let found = this.colours.get(token);
    if (found === undefined) this.colours.set(token, (found = this.css.getPropertyValue(token).trim()));
    return found;
  }

  font(size: number, weight = 400): void {
    this.context.font = `${weight} ${size}px ${this.colour("--sans")}`;
  }

  /** What fills a kind of span: a colour, or a pattern in it. */
  fill(colour: string, fill: Fill): string | CanvasPattern {
    const key = colour + fill;
    let found = this.fills.get(key);
    if (!found) this.fills.set(key, (found = this.make(colour, fill)));
    return found;
  }

  private make(colour: string, fill: Fill): string | CanvasPattern {
    if (fill === "plain") return this.colour(colour);
    if (fill === "open") return this.colour("--raised");
    const tile = document.createElement("canvas");
    const size = (tile.width = tile.height = Math.round(4 * this.scale));
    const c = tile.getContext("2d")!;
    c.fillStyle = this.colour("--band");
    c.fillRect(0, 0, size, size);
    c.strokeStyle = c.fillStyle = this.colour(colour);
    c.lineWidth = this.scale;
    if (fill === "dotted") {
      c.fillRect(0, 0, size / 3, size / 3);
    } else {
      c.beginPath();
      for (const x of [-size, 0, size]) {
        c.moveTo(x, size);
        c.lineTo(x + size, 0);
      }
      c.stroke();
    }
    const pattern = this.context.createPattern(tile, "repeat")!;
    pattern.setTransform(new DOMMatrix().scale(1 / this.scale));
    return pattern;
  }

  /** Text in a box, if there is room. */
  label(text: string, x: number, width: number, y: number): boolean {
    const from = Math.max(x, 0);
    const room = Math.min(x + width, this.width) - from;
    if (room < 8 || this.context.measureText(text).width > room - 6) return false;
    this.context.fillText(text, from + 3, y);
    return true;
  }
}

/** Times on the axis: all with the digits that tell one from the next. */
export function tickTexts(ticks: number[]): string[] {
  const most = Math.max(...ticks.map(Math.abs), 0);
  const [unit, name] = most >= 1 ? [1, "s"] : most >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
  const step = ticks.length > 1 ? (ticks[1]! - ticks[0]!) / unit : 1;
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  return ticks.map((t) => (t === 0 ? "0" : `${(t / unit).toFixed(digits)} ${name}`));
}

export function paintHead(
  brush: Brush,
  seen: Window,
  ticks: number[],
  model: Track[],
  measured: Track[],
  rows: { model: number; measured: number },
): void {
  const { context: c, width } = brush;
  const x = scaleOf(seen, width);
  const texts = tickTexts(ticks);
  brush.font(11);
  c.fillStyle = brush.colour("--soft");
  c.strokeStyle = brush.colour("--line");
  c.lineWidth = 1;
  for (const [i, t] of ticks.entries()) {
    const at = Math.round(x(t)) + 0.5;
    c.beginPath();
    c.moveTo(at, head.axis - 4);
    c.lineTo(at, head.axis);
    c.stroke();
    const w = c.measureText(texts[i]!).width;
    c.fillText(texts[i]!, Math.max(0, Math.min(width - w, at - w / 2)), head.axis / 2 - 1);
  }
  paintTrack(brush, x, model, rows.model, "model");
  paintTrack(brush, x, measured, rows.measured, "measured");
}

function paintTrack(brush: Brush, x: (t: number) => number, tracks: Track[], top: number, way: "model" | "measured"): void {
  const { context: c, width } = brush;
  const height = head.model - 4;
  const colour = brush.colour(way === "model" ? "--soft" : "--accent");
  let drawn = -Infinity; // coalesces what is narrower than a pixel
  for (const t of tracks) {
    const left = x(t.start);
    const right = x(t.end);
    if (right < 0 || left > width || right < drawn) continue;
    const y = top + t.line * head.measured + 2;
    const w = Math.max(1, right - left);
    if (w < 2) drawn = right + 1;
    if (w < 10) {
      c.globalAlpha = 0.5;
      c.fillStyle = colour;
      c.fillRect(left, y, Math.max(1, w - 1), height);
      c.globalAlpha = 1;
      continue;
    }
    c.fillStyle = way === "model" ? brush.fill("--line", "hatched") : brush.colour("--accent-paper");
    c.fillRect(left, y, w, height);
    c.strokeStyle = colour;
    c.setLineDash(way === "model" ? [3, 2] : []);
    c.strokeRect(left + 0.5, y + 0.5, w - 1, height - 1);
    c.setLineDash([]);
    brush.font(11, 600);
    for (const text of [`${t.text} · ${seconds(t.end - t.start)}`, t.text]) {
      const size = c.measureText(text).width;
      if (size > Math.min(right, width) - Math.max(left, 0) - 6) continue;
      if (way === "model") { // hatching makes text hard to read
        c.fillStyle = brush.colour("--paper");
        c.fillRect(Math.max(left, 0) + 2, y + 2, size + 2, height - 4);
      }
      c.fillStyle = brush.colour("--ink");
      brush.label(text, left, w, y + height / 2 + 0.5);
      break;
    }
  }
}

export interface Marks {
  /** The processor whose partners are shown, or -1. */
  chosen: number;
  focus: Shown | null;
  /** How far a run that goes on is. */
  now: number | null;
}

export function paintRows(brush: Brush, seen: Window, layout: Layout, measured: Measured, marks: Marks): void {
  const { context: c, width, height } = brush;
  const x = scaleOf(seen, width);
  paintBands(brush, x, measured);
  c.strokeStyle = brush.colour("--rule");
  c.lineWidth = 1;
  c.beginPath();
  for (const row of layout.rows) {
    c.moveTo(0, row.y + row.height - 0.5);
    c.lineTo(width, row.y + row.height - 0.5);
  }
  c.stroke();
  for (const row of layout.rows) paintRow(brush, x, seen, row, marks.chosen);
  c.globalAlpha = 1;
  if (marks.chosen >= 0) paintLinks(brush, x, seen, layout, marks.chosen);
  if (marks.focus) outline(brush, x, layout, marks.focus);
  if (marks.now !== null) {
    const at = Math.round(x(marks.now)) + 0.5;
    c.strokeStyle = brush.colour("--bad");
    c.beginPath();
    c.moveTo(at, 0);
    c.lineTo(at, height);
    c.stroke();
  }
}

/** Every other round has a band, and each begins at a line. */
function paintBands(brush: Brush, x: (t: number) => number, { bars, segments, end }: Measured): void {
  const { context: c, width, height } = brush;
  if (segments > 1 && bars.length > 0 && x(bars.at(-1)!.start) - x(bars[0]!.start) < 12 * bars.length) return;
  for (const [i, bar] of bars.entries()) {
    const left = Math.max(-1, x(bar.start));
    const right = Math.min(width + 1, x(bars[i + 1]?.start ?? end));
    if (right < 0 || left > width) continue;
    if (i % 2 === 0) {
      c.fillStyle = brush.colour("--band");
      c.fillRect(left, 0, right - left, height);
    }
    c.strokeStyle = brush.colour("--line");
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(Math.round(left) + 0.5, 0);
    c.lineTo(Math.round(left) + 0.5, height);
    c.stroke();
  }
}

function paintRow(brush: Brush, x: (t: number) => number, seen: Window, row: Row, chosen: number): void {
  const { context: c, width } = brush;
  const own = chosen < 0 || (row.first <= chosen && chosen <= row.last);
  for (const strip of row.strips) {
    const text = strip.height >= 10;
    if (text) brush.font(Math.min(10.5, strip.height - 1.5));
    let drawn = -Infinity;
    let kind: Kind | undefined;
    for (let i = firstAfter(strip, seen.from); i < strip.spans.length; i++) {
      const s = strip.spans[i]!;
      if (s.start > seen.to) break;
      const left = Math.max(-2, x(s.start));
      const right = Math.min(width + 2, x(s.end));
      if (right < drawn && s.kind === kind) continue; // it would not be seen
      const w = Math.max(1, right - left);
      drawn = left + Math.max(w, 1);
      kind = s.kind;
      const style = styles[s.kind];
      const patterned = w >= 3 && strip.height >= 5 && style.fill !== "plain";
      c.globalAlpha = (own || (isMessage(s) && s.partner === chosen) ? 1 : 0.2) * (strip.height < 5 && style.colour === "--faint" ? 0.5 : 1);
      c.fillStyle = patterned ? brush.fill(style.colour, style.fill) : brush.colour(style.colour);
      c.fillRect(left, strip.y, w > 4 ? w - 1 : w, strip.height);
      if (patterned) {
        c.strokeStyle = brush.colour(style.colour);
        c.lineWidth = 1;
        c.strokeRect(left + 0.5, strip.y + 0.5, w - 2, strip.height - 1);
      }
      if (text && w > 14 && style.fill !== "hatched" && style.fill !== "dotted") {
        c.fillStyle = brush.colour(style.fill === "plain" ? "--raised" : "--ink");
        brush.label(short(s), left, w, strip.y + strip.height / 2 + 0.5) || brush.label(shorter(s), left, w, strip.y + strip.height / 2 + 0.5);
      }
    }
  }
}

function short(s: Shown): string {
  if (s.kind === "send") return `→ P${s.partner}`;
  if (s.kind === "receive") return `← P${s.partner}`;
  return title(s);
}

function shorter(s: Shown): string {
  return isMessage(s) ? `${s.partner}` : s.kind;
}

const mostLinks = 400; // more would be a blot

/** Lines from what the chosen processor sends to where it arrives, and to it from whence. */
function paintLinks(brush: Brush, x: (t: number) => number, seen: Window, layout: Layout, chosen: number): void {
  const { context: c } = brush;
  const own = [...layout.rows].reverse().find((row) => row.first <= chosen && chosen <= row.last);
  if (!own) return;
  const ends = new Map<string, [Row, Shown]>();
  for (const row of layout.rows) {
    for (const s of row.spans) {
      if (isMessage(s) && s.partner === chosen) ends.set(`${s.kind} ${s.first} ${s.segment} ${s.round} ${s.port}`, [row, s]);
    }
  }
  const seenOwn = own.spans.filter((s) => isMessage(s) && s.first === chosen && s.start < seen.to && s.end > seen.from);
  if (seenOwn.length > mostLinks) return;
  c.lineWidth = 1.25;
  for (const s of seenOwn) {
    const other = s.kind === "send" ? "receive" : "send";
    const [row, partner] = ends.get(`${other} ${s.partner} ${s.segment} ${s.round} ${s.port}`) ?? [];
    if (!row || !partner) continue;
    const [fromRow, from, toRow, to] = s.kind === "send" ? [own, s, row, partner] : [row, partner, own, s];
    const begin = [x(from.start), middle(fromRow, from)] as const;
    const end = [x(to.end), middle(toRow, to)] as const;
    c.strokeStyle = c.fillStyle = brush.colour(styles[s.kind].colour);
    c.setLineDash(s.kind === "send" ? [] : [4, 2]);
    c.beginPath();
    c.moveTo(...begin);
    c.lineTo(...end);
    c.stroke();
    c.setLineDash([]);
    arrowhead(c, begin, end);
  }
}

function arrowhead(c: CanvasRenderingContext2D, [x0, y0]: readonly [number, number], [x1, y1]: readonly [number, number]): void {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  c.beginPath();
  c.moveTo(x1, y1);
  for (const side of [-0.4, 0.4]) c.lineTo(x1 - 7 * Math.cos(angle + side), y1 - 7 * Math.sin(angle + side));
  c.closePath();
  c.fill();
}

function middle(row: Row, s: Shown): number {
  const strip = row.strips.find((strip) => strip.spans[0]?.kind === s.kind && strip.spans.includes(s));
  return strip ? strip.y + strip.height / 2 : row.y + row.height / 2;
}

function outline(brush: Brush, x: (t: number) => number, layout: Layout, s: Shown): void {
  for (const row of layout.rows) {
    if (row.rank !== s.rank) continue;
    const strip = row.strips.find((strip) => strip.spans.includes(s));
    if (!strip) continue;
    brush.context.strokeStyle = brush.colour("--ink");
    brush.context.lineWidth = 2;
    brush.context.strokeRect(x(s.start) - 1, strip.y - 1, Math.max(1, x(s.end) - x(s.start)) + 2, strip.height + 2);
    return;
  }
}

export function scaleOf(seen: Window, width: number): (t: number) => number {
  const per = width / (seen.to - seen.from);
  return (t) => (t - seen.from) * per;
}
