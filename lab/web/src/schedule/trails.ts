// What emphasises a tree: its arrows, and the stretches of life lines between them.
import type { Drawn, Layout, Segment } from "./layout";
import { has, type Kind, type Schedule } from "./model";

interface Trail {
  key: string;
  /** At which it begins. */
  round: number;
  path: string;
}

export function trails(followed: Drawn[]): Trail[] {
  return followed.map((d) => ({ key: d.arrow.id, round: d.arrow.round, path: d.pieces.map(line).join("") }));
}

/** Of each life line from the first message of the tree there to the last one from there. */
export function stretches(l: Layout, s: Schedule, followed: Drawn[], kind: Kind, processor: number): Trail[] {
  const from = new Map<number, number>();
  const to = new Map<number, number>();
  if (has(s.detail, kind, processor)) {
    if (kind === "spread") from.set(processor, l.top + l.radius);
    else to.set(processor, l.bottom - l.radius);
  }
  for (const { arrow } of followed) {
    const { src, dst } = arrow.message;
    const band = l.bands[arrow.round]!;
    from.set(dst, Math.min(from.get(dst) ?? Infinity, band.arrives));
    to.set(src, Math.max(to.get(src) ?? -Infinity, band.departs));
  }
  return [...from].flatMap(([k, start]) => {
    const stop = to.get(k) ?? -Infinity;
    const round = l.bands.findIndex((b) => start < b.y + b.height);
    return start < stop ? [{ key: String(k), round, path: line([{ x: l.x(k), y: start }, { x: l.x(k), y: stop }]) }] : [];
  });
}

function line([a, b]: Segment): string {
  return `M${a.x.toFixed(1)} ${a.y.toFixed(1)}L${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
}
