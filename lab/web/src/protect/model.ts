// Where the parity of a group is, as package group has it, and what a loss leaves.

/** A codeword: chunks that depend on each other, one at each node. Any `needed` of them determine all. */
export interface Stripe {
  name: string;
  /** By node. */
  chunks: Chunk[];
}

export interface Chunk {
  parity: boolean;
  /** Among the chunks of its kind at the node, or in the stripe. */
  name: string;
}

/** The parity of stripe t is at the R nodes from t on. */
export function stripes(k: number, r: number): Stripe[] {
  const nodes = Array.from({ length: k }, (_, i) => i);
  return nodes.map((t) => ({
    name: `stripe ${t}`,
    chunks: nodes.map((n) => {
      const place = (n - t + k) % k;
      return place < r ? { parity: true, name: `p${place}` } : { parity: false, name: `d${place - r}` };
    }),
  }));
}

/** How many losses of at most r of k nodes there are. */
export function losses(k: number, r: number): number {
  let [sum, choose] = [0, 1];
  for (let f = 1; f <= r; f++) sum += choose = (choose * (k - f + 1)) / f;
  return Math.round(sum);
}

/** A manifest of volley protect, .volley/generation.N/manifest.json. */
export interface Manifest {
  version: number;
  group: string;
  generation: number;
  nodes: number;
  tolerate: number;
  data_chunks: number;
  parity_chunks: number;
  chunk_bytes: number;
}

export function readManifest(text: string): Manifest {
  const [line = ""] = text.split("\n", 1); // the next one has the digest of this one
  const m = JSON.parse(line) as Manifest;
  const whole = (n: unknown, least: number, most: number) => Number.isInteger(n) && (n as number) >= least && (n as number) <= most;
  if (m.version !== 6) throw new Error(`version: ${m.version}: want 6`); // earlier ones had other layouts, too
  if (!whole(m.nodes, 2, 1024)) throw new Error(`nodes: ${m.nodes}: want 2 to 1024`);
  if (!whole(m.tolerate, 1, m.nodes - 1)) throw new Error(`tolerate: ${m.tolerate}: want 1 to ${m.nodes - 1}`);
  for (const name of ["generation", "data_chunks", "parity_chunks", "chunk_bytes"] as const) {
    if (!whole(m[name], 0, Number.MAX_SAFE_INTEGER)) throw new Error(`${name}: ${m[name]}: want a number`);
  }
  return m;
}
