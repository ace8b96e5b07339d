// Drawings as files that need nothing else: styles become attributes.
const shape = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "paint-order",
];
const letters = ["font-size", "font-weight", "text-anchor"];
const initial: Record<string, string> = {
  "fill-opacity": "1", stroke: "none", "stroke-opacity": "1", "stroke-dasharray": "none", "stroke-linecap": "butt", "stroke-linejoin": "miter",
  opacity: "1", "paint-order": "normal", "font-weight": "400", "text-anchor": "start",
};
const ofPage = ["class", "style", "tabindex", "role", "aria-pressed", "aria-hidden", "data-id"];
const namespace = "http://www.w3.org/2000/svg";

/** The drawing as an SVG document, as it is on the page. */
export function svgText(svg: SVGSVGElement, title: string, description: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const copies = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  for (const [i, original] of originals.entries()) inline(original, copies[i]!);
  copy.querySelectorAll(".hit").forEach((e) => e.remove());
  for (const e of copies) {
    for (const name of [...e.getAttributeNames()]) if (ofPage.includes(name) || name.startsWith("on")) e.removeAttribute(name);
  }
  const comments = document.createTreeWalker(copy, NodeFilter.SHOW_COMMENT);
  const found: Node[] = [];
  while (comments.nextNode()) found.push(comments.currentNode);
  found.forEach((c) => c.parentNode?.removeChild(c));

  copy.setAttribute("xmlns", namespace);
  copy.setAttribute("role", "img");
  copy.removeAttribute("aria-label");
  const paper = element("rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(texted("title", title), texted("desc", description), paper);
  return new XMLSerializer().serializeToString(copy);
}

function inline(original: SVGElement, copy: SVGElement): void {
  const label = copy.getAttribute("aria-label");
  if (label && copy.tagName === "path") {
    copy.append(texted("title", label));
    copy.removeAttribute("aria-label");
  }
  const names = { g: ["opacity"], svg: ["font-family"], text: [...shape, ...letters], title: [] }[copy.tagName] ?? shape;
  const style = getComputedStyle(original);
  for (const name of names) {
    const value = style.getPropertyValue(name);
    const nothing = value === initial[name] || (name.startsWith("stroke-") && style.stroke === "none");
    if (nothing) copy.removeAttribute(name);
    else copy.setAttribute(name, value.replaceAll('"', "'"));
  }
}

function element(name: string): SVGElement {
  return document.createElementNS(namespace, name);
}

function texted(name: string, text: string): SVGElement {
  const e = element(name);
  e.textContent = text;
  return e;
}

/** A picture of the document, at twice its size. */
export async function png(text: string, width: number, height: number): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(2 * width);
    canvas.height = Math.ceil(2 * height);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large for this browser."))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
