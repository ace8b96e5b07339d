/** Digits as indices and as exponents. */
export function subscript(digits: string | number): string {
  return String(digits).replace(/\d/g, (d) => "₀₁₂₃₄₅₆₇₈₉"[Number(d)]!);
}

export function superscript(digits: string | number): string {
  return String(digits).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(d)]!);
}
