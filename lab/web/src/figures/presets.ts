// The figures of the paper: C. Wang and N. Raviv, "All-to-All Encode in Synchronous
// Systems", arXiv:2205.05183. Strides are the paper's; rounds are counted from 0, as
// everywhere on the page.
import type { Flags } from "../lib/api";
import type { Params } from "../lib/state.svelte";
import type { TreeKind } from "../schedule/model";

export interface Figure {
  id: string;
  name: string;
  title: string;
  /** Two sentences. */
  says: string;
  flags: Flags;
  /** What the schedule view shows of it. */
  params: Params;
  drawing: "schedule" | "transform" | TreeKind;
  /** Of a tree: the phase that it is limited to. */
  phase?: string;
}

export const figures: Figure[] = [
  {
    id: "universal",
    name: "Universal",
    title: "A universal algorithm for K = 4, p = 1",
    says:
      "In round 0 (round 1 in the paper, which counts from 1) every processor sends its packet to the next one, and in round 1 a sum of the two packets that it then has two further on. " +
      "The caption in the paper has a₍ₖ₋₁₎ₖ·xₖ₋₁ sent first, but it is xₖ₋₁ itself: a₀₁ is 0 here, and still processor 1 passes x0 on to processor 3, with a₀₃ = 4.",
    flags: { processors: "4", ports: "1", algorithm: "prepare-and-shoot", field: "7", matrix: "random:27" },
    params: {},
    drawing: "schedule",
  },
  {
    id: "prepare",
    name: "Prepare",
    title: "Prepare with m = 9, p = 2: where x0 goes",
    says:
      "Round 0 takes x0 from processor 0 to 3 and 6, and round 1 takes it from each of these three to the next two, so that processors 0 to 8 have it. " +
      "All packets move in this way at the same time, K = 27 of them here; the paper counts rounds from 1, this page from 0.",
    flags: { processors: "27", ports: "2", algorithm: "prepare-and-shoot", matrix: "random:1" },
    params: { follow: "0" },
    drawing: "spread",
    phase: "prepare",
  },
  {
    id: "shoot",
    name: "Shoot",
    title: "Shoot for K = 65, p = 2: where y0 comes from",
    says:
      "When shoot begins, processor 0 and seven others hold sums of at most nine packets each for y0, which go 9 and 18 processors further in round 2 and 27 and 54 in round 3, modulo 65. " +
      "Round t of the phase, counted from 1, goes to k + ρ·m·(p+1)ᵗ⁻¹, and not to k + ρ·mᵗ as the paper says: with m = 9 that would be 81 and 162 in the second round.",
    flags: { processors: "65", ports: "2", algorithm: "prepare-and-shoot", matrix: "random:1" },
    params: { follow: "0", tree: "gather" },
    drawing: "gather",
    phase: "shoot",
  },
  {
    id: "dft",
    name: "DFT",
    title: "The two trees of a DFT for K = 9, p = 2",
    says:
      "Result y0 is f(1) for the polynomial f whose coefficients are the packets: round 0 makes f₀, f₁ and f₂, which have every third coefficient, and round 1 makes f of these. " +
      "At the same time x0 goes to three processors and then to nine, which evaluate at three and then at nine powers of β = 4, an element of order 9 in F₁₉.",
    flags: { processors: "9", ports: "2", algorithm: "dft", field: "19", matrix: "dft", order: "reversed" },
    params: {},
    drawing: "transform",
  },
];
