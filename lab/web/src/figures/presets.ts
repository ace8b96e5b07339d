// The figures of the paper: C. Wang and N. Raviv, "All-to-All Encode in Synchronous
// Systems", arXiv:2205.05183. What they show is drawn by the package draw, which also
// writes figures.json.
import type { Flags } from "../lib/api";
import type { Params } from "../lib/state.svelte";
import drawn from "./figures.json";

export interface Figure {
  number: number;
  title: string;
  caption: string;
  /** What the paper has otherwise. */
  corrections: string[];
  id: string;
  flags: Flags;
  /** What the schedule view shows of it. */
  params: Params;
  /** What stands above its schedule, where the page steps through it. */
  steps?: string;
}

const ids: Pick<Figure, "id" | "flags" | "params" | "steps">[] = [
  {
    id: "universal",
    flags: { processors: "4", ports: "1", algorithm: "prepare-and-shoot", field: "7", matrix: "random:27" },
    params: {},
    steps: "With numbers: a₀₁ is 0 here, and still processor 1 passes x0 on to processor 3, with a₀₃ = 4. Rounds are counted from 0, as everywhere on this page.",
  },
  {
    id: "prepare",
    flags: { processors: "65", ports: "2", algorithm: "prepare-and-shoot", matrix: "random:1" },
    params: { follow: "0" },
  },
  {
    id: "shoot",
    flags: { processors: "65", ports: "2", algorithm: "prepare-and-shoot", matrix: "random:1" },
    params: { follow: "0", tree: "gather" },
  },
  {
    id: "dft",
    flags: { processors: "9", ports: "2", algorithm: "dft", field: "19", matrix: "dft", order: "reversed" },
    params: {},
    steps: "The schedule: results in digit-reversed order. Rounds are counted from 0, as everywhere on this page.",
  },
];

export const figures: Figure[] = drawn.map((figure, i) => ({ ...figure, ...ids[i]! }));

/** The file of a figure. */
export function fileOf(figure: Figure, format: "svg" | "pdf" | "tex"): string {
  return `${import.meta.env.BASE_URL}figures/figure-${figure.number}.${format}`;
}
