// Drawings and tables as files.

/** Computed styles that a drawing needs where there is no style sheet, and what they are by default. */
const ofShapes: Record<string, string> = {
  fill: "rgb(0, 0, 0)", "fill-opacity": "1", stroke: "none", "stroke-width": "1px", "stroke-opacity": "1", "stroke-dasharray": "none",
  "stroke-linecap": "butt", "stroke-linejoin": "miter", opacity: "1", "paint-order": "normal",
};
const ofTexts: Record<string, string> = { "font-size": "", "font-style": "normal", "font-weight": "400", "text-anchor": "start" };
const namespace = "http://www.w3.org/2000/svg";
const captionSize = 11;

/**
 * A drawing as a file of its own, in the colours that it has on the page, with a title and
 * a description for who does not see it. What is marked with data-screen, such as a cursor,
 * is left out. A caption goes below.
 */
export function svgOf(drawing: SVGSVGElement, title: string, { description = "", caption = "" } = {}): string {
  const { width, height } = drawing.viewBox.baseVal;
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const page = getComputedStyle(document.documentElement);
  const children = [...copy.children];
  [...drawing.children].forEach((child, i) => style(child, children[i]!));
  const below = caption === "" ? 0 : captionSize + 12;
  strip(copy);
  copy.setAttribute("xmlns", namespace);
  copy.setAttribute("role", "img");
  copy.setAttribute("font-family", getComputedStyle(drawing).fontFamily.replaceAll('"', "'"));
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height + below));
  copy.setAttribute("viewBox", `0 0 ${width} ${height + below}`);
  copy.prepend(
    element("title", {}, title),
    ...(description === "" ? [] : [element("desc", {}, description)]),
    element("rect", { width: "100%", height: "100%", fill: page.getPropertyValue("--paper").trim() }),
  );
  if (caption !== "") {
    const at = { x: "6", y: String(height + captionSize), fill: page.getPropertyValue("--soft").trim() };
    copy.append(element("text", { ...at, "font-size": `${captionSize}px` }, caption));
  }
  const comments = document.createNodeIterator(copy, NodeFilter.SHOW_COMMENT); // which Svelte leaves
  for (let c = comments.nextNode(); c; c = comments.nextNode()) (c as Comment).remove();
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

/** Writes into the copy how each element looks on the page. What groups hand down, their elements have computed. */
function style(from: Element, to: Element): void {
  const computed = getComputedStyle(from);
  const group = from.tagName === "g";
  const wanted = group ? { opacity: "1" } : from.tagName === "text" ? { ...ofShapes, ...ofTexts } : ofShapes;
  for (const [name, initial] of Object.entries(wanted)) {
    const value = computed.getPropertyValue(name).replaceAll('"', "'");
    if (value === initial) to.removeAttribute(name);
    else to.setAttribute(name, value);
  }
  const says = from.getAttribute("aria-label");
  const children = [...to.children];
  [...from.children].forEach((child, i) => style(child, children[i]!));
  if (says && from.tagName === "path") to.append(element("title", {}, says));
  if (to.hasAttribute("data-screen")) to.remove();
  else strip(to);
}

/** Takes away what only the page needs. */
function strip(e: Element): void {
  for (const name of e.getAttributeNames()) {
    if (["class", "style", "tabindex", "role"].includes(name) || /^(aria|data)-/.test(name)) e.removeAttribute(name);
  }
}

function element(name: string, attributes: Record<string, string>, text = ""): SVGElement {
  const e = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.textContent = text;
  return e;
}

/** An SVG file as pixels, `scale` for each of its own. */
export async function pngOf(svg: string, scale = 2): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(image.width * scale);
  canvas.height = Math.ceil(image.height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser does not make the PNG."))), "image/png"),
  );
}

/** Hands a file to the browser's downloads. */
export function save(name: string, content: Blob | string, type = "image/svg+xml"): void {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
