// Labels of arrows: what a message carries, in so many lines of so many pixels.
import type { Slot } from "../lib/api";
import { textWidth as width } from "../lib/text";

interface Item {
  text: string;
  packets: number;
}

/**
 * The lines of a label. Packets are merged to runs, long sums are broken or cut, and what
 * does not fit is counted, as in "x0 x4 +6".
 */
export function shorten(slots: Slot[], lines: number, size: number, wide: number): string[] {
  const list = items(slots);
  for (let shown = list.length; ; shown--) {
    let left = slots.length;
    const broken: string[] = [];
    const cut: string[] = [];
    for (const it of list.slice(0, shown)) {
      left -= it.packets;
      broken.push(...breakUp(it.text, size, wide));
      cut.push(`${fit(it.text, size, wide)} `);
    }
    if (left > 0) {
      broken.push(`+${left}`);
      cut.push(`+${left}`);
    }
    const whole = wrap(broken, size, wide);
    if (whole.length <= lines) return whole;
    const short = wrap(cut, size, wide);
    if (short.length <= lines || shown <= 1) return short;
  }
}

function wrap(pieces: string[], size: number, wide: number): string[] {
  const lines: string[] = [];
  for (const piece of pieces) {
    const joined = (lines.at(-1) ?? "") + piece;
    if (lines.length === 0) lines.push(piece);
    else if (width(joined.trim(), size) <= wide) lines[lines.length - 1] = joined;
    else lines.push(piece);
  }
  return lines.map((l) => l.trim());
}

function breakUp(text: string, size: number, wide: number): string[] {
  if (width(text, size) <= wide) return [`${text} `];
  return `${text} `.match(/[^,]*,|[^,]+$/g) ?? [];
}

/** Initial packets first, then the coded ones, in runs, and then the sums. */
function items(slots: Slot[]): Item[] {
  const of = (letter: string) =>
    slots.flatMap((s) => (s.label.match(new RegExp(`^${letter}(\\d+)$`)) ? [Number(s.label.slice(1))] : [])).sort((a, b) => a - b);
  return [
    ...runs("x", of("x")),
    ...runs("y", of("y")),
    ...slots.filter((s) => !/^[xy]\d+$/.test(s.label)).map((s) => ({ text: s.label, packets: 1 })),
  ];
}

/** Runs have one number, or three or more. */
function runs(letter: string, list: number[]): Item[] {
  const found: Item[] = [];
  for (let i = 0; i < list.length; ) {
    let end = i + 1;
    while (end < list.length && list[end] === list[end - 1]! + 1) end++;
    if (end - i === 2) end--;
    const text = letter + list[i] + (end - i > 1 ? `..${letter}${list[end - 1]}` : "");
    found.push({ text, packets: end - i });
    i = end;
  }
  return found;
}

/** Cuts a word that is too wide, as in "y4(x0,x2…)". */
export function fit(text: string, size: number, wide: number): string {
  if (width(text, size) <= wide) return text;
  const end = text.endsWith(")") ? "…)" : "…";
  for (let cut = text.length - 1; cut > 3; cut--) {
    // Not in the middle of a name: x1… would mean another packet than x14.
    const whole = /[x\d]/.test(text[cut]!) ? text.slice(0, cut).replace(/x?\d*$/, "") : text.slice(0, cut);
    const kept = whole.replace(/[,+.(]+$/, "");
    const s = kept + (kept.includes("(") ? end : "…");
    if (width(s, size) <= wide) return s;
  }
  return text;
}
