// Numbers as people read them.

/** At most four digits, no trailing zeros; thousands with commas. */
export function number(x: number): string {
  if (Number.isInteger(x)) return x.toLocaleString("en-US");
  return Number(x.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

export function seconds(s: number): string {
  if (s === 0) return "0";
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]] as const) {
    if (s >= unit) return `${Number((s / unit).toPrecision(3))} ${name}`;
  }
  return `${Number((s / 1e-9).toPrecision(3))} ns`;
}

export function bytes(n: number): string {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
    if (n >= unit) return `${Number((n / unit).toPrecision(4))} ${name}`;
  }
  return `${number(n)} B`;
}

/** "1 round", "2 rounds". */
export function count(n: number, what: string): string {
  return `${number(n)} ${what}${n === 1 ? "" : "s"}`;
}
