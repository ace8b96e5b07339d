// What the page shows, which is what its address says: view, flags, and the view's own
// state, as in #/schedule?k=8&p=2&round=1, or #/story/3 for a screen. Defaults are left out.
import { flagNames, type FlagName, type Flags } from "./api";

export const views = ["story", "schedule", "protect", "proof", "cost", "figures"] as const;
export type View = (typeof views)[number];
export type Params = Record<string, string>;

/** What these views show of the rounds is the same; they open before the first. */
const ofPlan = (view: View) => view === "schedule" || view === "proof";
const stepped: View[] = ["schedule", "proof", "figures"];

/** Whether a change can be undone with the back button: what is typed can, all of it at once. */
export type How = "push" | "replace" | "type";

/** Defaults where the command line has none, or where the page shows something else. */
export const pageDefaults: Flags = { processors: "8", ports: "1" };

const shortNames: Partial<Record<FlagName, string>> = { processors: "k", ports: "p" };
const longNames: Record<string, FlagName> = { k: "processors", p: "ports" };

class Explorer {
  view: View = $state("story");
  /** Flags that differ from their defaults. */
  flags: Flags = $state({});
  /** The state of the view: what is followed, which round, which chart. */
  params: Params = $state({});

  private kept: Partial<Record<View, Params>> = {};
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The field that is typed in. */
  private typing: Element | null = null;

  constructor() {
    this.read();
    addEventListener("focusout", () => (this.typing = null));
    addEventListener("hashchange", () => this.read());
    addEventListener("popstate", () => this.read());
  }

  /** The flags of a request: K is always there. */
  get request(): Flags {
    return { ...this.defaults, ...this.flags };
  }

  /**
   * On a network the planner chooses the ports. Many processors need more elements than the usual field has. Until more is
   * chosen than K and p, the algorithm is that of the story.
   */
  private get defaults(): Flags {
    const defaults: Flags = this.flags.model === "network" ? { processors: pageDefaults.processors! } : { ...pageDefaults };
    if (Object.keys(this.flags).every((name) => name in pageDefaults)) defaults.algorithm = "universal";
    const k = Number(this.flags.processors ?? defaults.processors);
    const many = k + Number(this.flags.sinks ?? k) > 256 && !this.flags.matrix?.startsWith("dft");
    return many ? { ...defaults, field: "2^16" } : defaults;
  }

  flag(name: FlagName): string {
    return this.flags[name] ?? this.defaults[name] ?? "";
  }

  setFlag(name: FlagName, text: string, how: How = "type"): void {
    this.setFlags({ ...this.flags, [name]: text }, how);
  }

  /** Replaces all flags. */
  setFlags(flags: Flags, how: How = "push"): void {
    this.apply({ flags }, how);
  }

  param(name: string): string {
    return this.params[name] ?? "";
  }

  /** A number of the view's state, from 0 and below `end`; null where there is none. */
  index(name: string, end: number): number | null {
    const text = this.param(name);
    return /^\d+$/.test(text) && Number(text) < end ? Number(text) : null;
  }

  /** Sets some of the view's state; "" or undefined is the default. */
  setParams(params: Record<string, string | number | undefined>, how: How = "replace"): void {
    const all = { ...this.params };
    for (const [name, value] of Object.entries(params)) all[name] = value === undefined ? "" : String(value);
    this.apply({ params: all }, how);
  }

  show(view: View): void {
    if (view === this.view) return;
    this.kept[this.view] = $state.snapshot(this.params);
    const params: Params = this.kept[view] ?? (stepped.includes(view) ? { round: "0" } : {});
    if (ofPlan(this.view) && ofPlan(view)) params.round = this.params.round ?? "";
    this.apply({ view, params }, "push");
  }

  /** Changes several things at once: what presets do. */
  apply(to: { view?: View; flags?: Flags; params?: Params }, how: How = "push"): void {
    if (to.view) this.view = to.view;
    if (to.flags) this.flags = trimmed(to.flags, pageDefaults) as Flags;
    if (to.params) this.params = trimmed(to.params, {});
    this.write(how);
  }

  /** The address of what is shown. */
  get hash(): string {
    const pairs: string[] = [];
    for (const name of flagNames) {
      const text = this.flags[name];
      if (text !== undefined) pairs.push(`${shortNames[name] ?? name}=${encode(text)}`);
    }
    const { screen, ...params } = this.params;
    for (const [name, text] of Object.entries(params)) pairs.push(`${name}=${encode(text)}`);
    return `#/${this.view}${screen ? `/${encode(screen)}` : ""}${pairs.length > 0 ? "?" : ""}${pairs.join("&")}`;
  }

  get link(): string {
    return new URL(this.hash, location.href).href;
  }

  private write(how: How): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (how === "push" || (how === "type" && this.typing !== document.activeElement)) {
      if (this.hash === location.hash) return;
      history.pushState(null, "", this.hash);
      this.typing = how === "type" ? document.activeElement : null;
      return;
    }
    // Browsers refuse addresses that change too often, as they do while one scrubs.
    this.timer = setTimeout(() => history.replaceState(null, "", this.hash), 120);
  }

  private read(): void {
    clearTimeout(this.timer);
    const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const [view, screen = ""] = path.split("/", 2);
    const flags: Flags = {};
    const params: Params = { screen };
    for (const pair of query.split("&")) {
      const [name = "", text = ""] = pair.split("=", 2).map(decode);
      const flag = longNames[name] ?? flagNames.find((f) => f === name);
      if (flag) flags[flag] = text;
      else if (name !== "") params[name] = text;
    }
    this.view = views.find((v) => v === view) ?? "story";
    this.flags = trimmed(flags, pageDefaults) as Flags;
    this.params = trimmed(params, {});
    this.typing = null;
    if (this.hash !== location.hash && location.hash !== "") history.replaceState(null, "", this.hash); // as a click would have it
  }
}

function trimmed(all: Record<string, string | undefined>, defaults: Record<string, string | undefined>): Record<string, string> {
  const left: Record<string, string> = {};
  for (const [name, text] of Object.entries(all)) {
    if (text !== undefined && text !== "" && text !== defaults[name]) left[name] = text;
  }
  return left;
}

/** What is legible in an address stays so. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(3A|2C|5E|2F)/g, decodeURIComponent);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const explorer = new Explorer();
