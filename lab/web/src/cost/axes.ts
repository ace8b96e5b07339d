// Axes: a scale, and where its ticks are.
import { scaleLinear, scaleLog } from "d3-scale";

export interface Axis {
  label: string;
  log: boolean;
  /** Ticks at powers of two, as of K and of sizes. */
  binary?: boolean;
  /** Values are whole numbers. */
  whole?: boolean;
  domain: [number, number];
  format: (value: number) => string;
}

export interface Scale {
  (value: number): number;
  ticks: number[];
  invert: (pixel: number) => number;
}

/** A scale over pixels, with ticks at least `apart` pixels from each other. */
export function scaleOf(axis: Axis, range: [number, number], apart: number): Scale {
  const room = Math.max(2, Math.floor(Math.abs(range[1] - range[0]) / apart));
  const d3 = (axis.log ? scaleLog() : scaleLinear()).domain(axis.domain).range(range);
  const fits = (list: number[]) => list.every((t, i) => i === 0 || Math.abs(d3(t) - d3(list[i - 1]!)) >= apart);
  let ticks = axis.log ? logTicks(axis, room, fits) : axis.binary ? binaryTicks(axis, room / 1.7) : d3.ticks(room / 1.7);
  const whole = ticks.filter(Number.isInteger);
  if (axis.whole && whole.length > 1) ticks = whole;
  return Object.assign((value: number) => d3(value), { ticks, invert: (pixel: number) => d3.invert(pixel) });
}

function logTicks(axis: Axis, room: number, fits: (list: number[]) => boolean): number[] {
  const [low, high] = axis.domain;
  const sets = axis.binary
    ? [1, 2, 3, 4, 5, 10].map((step) => powers(2 ** step, [1], low, high))
    : [powers(10, [1, 2, 3, 4, 5, 6, 7, 8, 9], low, high), powers(10, [1, 2, 5], low, high), ...[1, 2, 3].map((step) => powers(10 ** step, [1], low, high))];
  const first = sets.find(fits) ?? [];
  return first.length >= 3 ? first : scaleLinear().domain(axis.domain).ticks(Math.min(room, 5)).filter((t) => t > 0);
}

function binaryTicks({ domain: [low, high] }: Axis, room: number): number[] {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2((high - low) / room)));
  const list: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) list.push(tick);
  return list;
}

function powers(base: number, factors: number[], low: number, high: number): number[] {
  const list: number[] = [];
  const first = Math.floor(Math.log(low) / Math.log(base) + 1e-9);
  for (let e = first; base ** e <= high * (1 + 1e-9); e++) {
    for (const f of factors) {
      const tick = e < 0 ? f / base ** -e : f * base ** e;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) list.push(tick);
    }
  }
  return list;
}

/** A domain around values, with a margin so that lines do not lie on the frame. */
export function around([low, high]: [number, number], log: boolean): [number, number] {
  if (!log) return [0, high * 1.05];
  const margin = Math.max((high / low) ** 0.04, 1.06);
  return [low / margin, high * margin];
}
