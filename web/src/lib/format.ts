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

/** The bytes of a size such as 64MiB, as the command line reads it; null where it is none. */
export function parseSize(text: string): number | null {
  const found = /^\s*([\d.,]+)\s*([kmgtpe]?)(i?)b?\s*$/i.exec(text);
  if (!found) return null;
  const power = " kmgtpe".indexOf((found[2] || " ").toLowerCase());
  const n = Number(found[1]!.replaceAll(",", "")) * (found[3] ? 1024 : 1000) ** power;
  return Number.isFinite(n) ? n : null;
}
