// How lines look: colour, dash and marker tell algorithms apart, each on its own.
import {
  symbol, symbolCircle, symbolCross, symbolDiamond, symbolPlus, symbolSquare, symbolStar, symbolTimes, symbolTriangle, symbolWye,
  type SymbolType,
} from "d3-shape";
import type { AlgorithmEntry } from "../lib/api";

export interface Look {
  colour: string;
  dash: string;
  width: number;
  marker: Marker | null;
}

export interface Marker {
  path: string;
  /** Drawn by its outline. */
  open: boolean;
}

function marker(type: SymbolType, size: number, open = false): Marker {
  return { path: symbol(type, size)() ?? "", open };
}

const full = [marker(symbolCircle, 30), marker(symbolSquare, 28), marker(symbolTriangle, 28), marker(symbolDiamond, 28), marker(symbolCross, 34), marker(symbolStar, 26), marker(symbolWye, 34)];
const hollow = [marker(symbolCircle, 30, true), marker(symbolSquare, 28, true), marker(symbolTriangle, 28, true), marker(symbolDiamond, 28, true), marker(symbolPlus, 30, true)];
const dashes = ["", "7 3", "2 2.5", "9 3 2 3", "4 3"];
const colours = 7; // port-7 is the grey of what algorithms are compared with

/**
 * The looks of the algorithms that are drawn together. Each has its own by its place in the
 * registry, whatever it is drawn with, unless another one has the same: then the next free one.
 */
export function looks(registry: AlgorithmEntry[], drawn: string[]): (name: string) => Look {
  const table = new Map<string, Look>();
  const taken = new Set<number>();
  const there = (baseline: boolean) => registry.filter((a) => a.name !== "auto" && a.baseline === baseline);
  there(false).forEach((a, place) => {
    if (!drawn.includes(a.name)) return;
    let i = place % colours;
    for (let tried = 0; taken.has(i) && tried < colours; tried++) i = (i + 1) % colours;
    while (taken.has(i)) i += colours;
    taken.add(i);
    const again = Math.floor(i / colours);
    table.set(a.name, {
      colour: `var(--port-${i % colours})`, dash: dashes[(i + 2 * again) % dashes.length]!, width: 1.7, marker: full[(i + 3 * again) % full.length]!,
    });
  });
  there(true).forEach((a, i) =>
    table.set(a.name, { colour: "var(--port-7)", dash: dashes[(i + 1) % dashes.length]!, width: 1.2, marker: hollow[i % hollow.length]! }),
  );
  return (name) => table.get(name) ?? { colour: "var(--soft)", dash: "", width: 1.2, marker: null };
}

export const boundLook: Look = { colour: "var(--ink)", dash: "", width: 1.2, marker: null };
export const fewestLook: Look = { colour: "var(--ink)", dash: "", width: 0, marker: marker(symbolTimes, 34, true) };

export interface Point {
  x: number;
  /** null: there is none. */
  y: number | null;
}

export interface Line {
  id: string;
  label: string;
  /** Lines of an algorithm are highlighted together. */
  group: string;
  look: Look;
  points: Point[];
}

/** The range of positive values. */
export function extent(values: Iterable<number | null>): [number, number] | null {
  let [low, high] = [Infinity, 0];
  for (const v of values) {
    if (v === null || !(v > 0) || !isFinite(v)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return high > 0 ? [low, high] : null;
}
