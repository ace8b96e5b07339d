// What the page calls the flags of the command line.
import type { FlagName } from "./api";

export const labels: Record<FlagName, string> = {
  processors: "Processors K", ports: "Ports p", sinks: "Sinks R", separate: "Sinks are processors of their own",
  matrix: "Matrix A", points: "Points", omega: "Points ω", alpha: "Points α", order: "Order of results", inverse: "Inverse of the matrix",
  field: "Field", algorithm: "Algorithm", size: "Packet size",
  model: "Network", network: "Rate and latency", beta: "β", tau: "τ", gamma: "γ",
  whole: "Packets stay whole", "rounds-over": "Rounds over the fewest", "max-memory": "Memory at most", "max-compute": "C3 at most",
};
const all: Record<string, string | undefined> = { ...labels, k: labels.processors, p: labels.ports };

/** The name of a field; of one that has no flag, what the engine calls it. */
export function labelOf(field: string): string {
  return all[field] ?? field;
}

/** An error of the engine, which speaks of flags, in the words of the fields. It stands beside the field at fault, and quotes what is typed. */
export function inWords(message: string): string {
  return message
    .replace(/^--[a-z-]+ /, "")
    .replace(/"(?:[^"\\]|\\.)*"|\B--?([a-z][a-z-]*)/g, (text, flag?: string) => (flag && all[flag] ? `“${all[flag]}”` : text));
}
