/** Digits as an index. */
export function subscript(digits: string | number): string {
  return String(digits).replace(/\d/g, (d) => "₀₁₂₃₄₅₆₇₈₉"[Number(d)]!);
}
