/** A sum of packets: coefs[i] times the packet of rows[i]. */
export interface Sum {
  rows: number[];
  coefs: string[];
}

/** The first terms of a sum in symbols, such as "7·x0". */
export function termsOf(sum: Sum, names: string[], most: number): string[] {
  return sum.rows.slice(0, most).map((row, i) => (sum.coefs[i] === "1" ? "" : `${sum.coefs[i]}·`) + names[row]);
}
