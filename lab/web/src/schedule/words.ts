// Labels of arrows: what a message carries, in so many pixels.
import { textWidth as width } from "../lib/text";

interface Item {
  text: string;
  packets: number;
}

/** A label of so many pixels for so many elements: packets are merged to runs, long sums are cut, and what does not fit is counted, as in "x0 x4 +6". */
export function shorten(labels: string[], elements: number, size: number, wide: number): string {
  const list = items(labels);
  for (let shown = list.length; ; shown--) {
    const some = list.slice(0, shown);
    const left = elements - some.reduce((n, it) => n + it.packets, 0);
    const text = [...some.map((it) => fit(it.text, size, wide)), ...(left > 0 ? [`+${left}`] : [])].join(" ");
    if (width(text, size) <= wide || shown <= 1) return text;
  }
}

/** Initial packets first, then the coded ones, in runs, and then the sums. */
function items(labels: string[]): Item[] {
  const of = (letter: string) => labels.flatMap((l) => (l.match(new RegExp(`^${letter}(\\d+)$`)) ? [Number(l.slice(1))] : [])).sort((a, b) => a - b);
  return [...runs("x", of("x")), ...runs("y", of("y")), ...labels.filter((l) => !/^[xy]\d+$/.test(l)).map((text) => ({ text, packets: 1 }))];
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
    // Not in the middle of a name: x1… would mean another packet than x14, and x8… another piece than x8.14.
    const whole = /[x\d.]/.test(text[cut]!) ? text.slice(0, cut).replace(/[xy]?[\d.]*$/, "") : text.slice(0, cut);
    const kept = whole.replace(/[,+.(]+$/, "");
    const s = kept + (kept.includes("(") ? end : "…");
    if (width(s, size) <= wide) return s;
  }
  return text;
}
