const font = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';

let context: CanvasRenderingContext2D | null | undefined;

/** The width of a text, a little too wide: what a drawing is exported for may have another font. */
export function textWidth(text: string, size: number, bold = false): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return 0.62 * size * text.length;
  context.font = `${bold ? 600 : 400} ${size}px ${font}`;
  return 1.03 * context.measureText(text).width;
}

/** Bytes in hexadecimal, as people read them. */
export function pairs(hex: string): string {
  return hex.replace(/..(?=.)/g, "$& ");
}
