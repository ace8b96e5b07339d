// What the engine is asked and what it answers: lab/explore has the other end.

/** Flags of the command line by their long names; absent is the default. */
export type Flags = Partial<Record<FlagName, string>>;

export const flagNames = [
  "processors", "ports", "field", "matrix", "points", "omega", "alpha", "order", "inverse",
  "sinks", "separate", "algorithm", "size", "beta", "tau", "gamma", "model", "network", "whole", "rounds-over", "max-memory", "max-compute",
] as const;
export type FlagName = (typeof flagNames)[number];

// catalog

export interface Catalog {
  version: string;
  flags: FlagEntry[];
  fields: FieldEntry[];
  matrices: MatrixEntry[];
  algorithms: AlgorithmEntry[];
  most_detailed: number;
}

export interface FlagEntry {
  name: string;
  short?: string;
  default: string;
  usage: string;
}

/** A form of names of fields, such as 2^w, and one of them. */
export interface FieldEntry {
  name: string;
  example: string;
  title: string;
}

export interface MatrixEntry {
  name: string;
  /** What follows its colon, such as SEED; "" if nothing may. */
  argument: string;
  formula: string;
  doc: string;
}

export interface AlgorithmEntry {
  name: string;
  title: string;
  problem: string;
  c1: string;
  c2: string;
  source: string;
  structured: boolean;
  baseline: boolean;
}

// plan

export interface Plan {
  command: string;
  info: Info;
  cost: Cost;
  candidates: Candidate[];
  rejected: { algorithm: string; reason: string }[];
  /** By round; empty for more than Catalog.most_detailed processors. */
  messages: Message[][];
  detail?: Detail;
  /** A is what the plan computes, as of a file that names no other. */
  own_matrix: boolean;
  aggregate: Aggregate;
}

export interface Info {
  algorithm: string;
  parameters: string;
  field: string;
  q: string;
  processors: number;
  ports: number;
  rows: number;
  columns: number;
  pieces: number;
  phases: { name: string; rounds: number }[];
  notes: string[];
  layers: string[];
  structure: string;
}

export interface Cost {
  c1: number;
  c2: number;
  c3: number;
  packets_c2: number;
  /** Of plans for the matrix, if that is known, C2 in packets; universal_c2: of plans for every matrix in as many rounds, beside such a plan. */
  bound_c1?: number;
  bound_c2?: number;
  universal_c2?: number;
  seconds: number;
  /** Of a packet. */
  bytes: number;
  /** Of it as symbols. */
  packet_bytes: number;
  beta: number;
  tau: number;
  gamma: number;
  /** L, o and G in seconds, and what the busiest processor exchanges; null in the model of the paper. */
  network: { latency: number; overhead: number; gap: number; messages: number; packets: number } | null;
  rounds: { largest_message: number; messages: number }[];
  /** Seconds of the rounds' messages, in the model. */
  times: number[];
}

export interface Candidate {
  algorithm: string;
  parameters: string;
  ports: number;
  c1: number;
  c2: number;
  c3: number;
  memory: number;
  seconds: number;
  /** The limit that it breaks; "" if none. */
  broken: string;
  /** By the planner. */
  chosen: boolean;
  /** By the flags: whatever others cost, it is the plan. */
  named: boolean;
}

/** Everything about every slot; there unless slots and packets are too many. */
export interface Detail {
  inputs: number[][];
  outputs: { column: number; slot: number }[][];
  row_names: string[];
  column_names: string[];
  memory: Slot[][];
  matrix: string[][];
  partial: [row: number, column: number, value: string][][];
  mismatches: { row: number; column: number; got: string; want: string }[];
}

export interface Message {
  src: number;
  dst: number;
  port: number;
  /** Slots at the sender, and the first of as many at the receiver. */
  slots: number[];
  received: number;
  /** Of the first 16 elements, such as x3 or y4.0. */
  labels: string[];
}

export interface Slot {
  /** -1 for inputs; computed slots are made just before round `round`, received ones arrive in it. */
  round: number;
  kind: "input" | "computed" | "received";
  from?: number;
  port?: number;
  formula?: string;
  label: string;
  rows: number[];
  coefs: string[];
  columns: number[];
}

/** Bins of processors and rounds, all but perhaps the last one equally large. */
export interface Aggregate {
  processor_bin: number;
  round_bin: number;
  /** By bins of processors and rounds: the most elements that one processor sends in one round. */
  sent: number[][];
  /** By bins of senders and receivers: all elements. */
  pairs: number[][];
  /** Likewise: the round with the first message; -1 where there is none. */
  since: number[][];
  /** The first 2,048, each with the most frequent 16 offsets. */
  rounds: AggregateRound[];
}

export interface AggregateRound {
  elements: number;
  offsets: { offset: number; messages: number }[];
}

// mix

/** What a plan makes of words, and how lost ones come back. All bytes are in hexadecimal. */
export interface Mix {
  words: string[];
  mixtures: Mixture[];
  /** By lost processor; empty where too many are lost. */
  back: Mixture[];
  needed: number;
  left: number;
  /** What a bit that a shift moves out of a byte comes back as. */
  fold: string;
}

/** A sum of products. */
export interface Mixture {
  name: string;
  bytes: string;
  text: string;
  terms: Product[];
}

/** A packet times a number: the sum of the packet shifted by the places of the number's ones. */
export interface Product {
  coef: string;
  name: string;
  from: string;
  bytes: string;
  shifts: { by: number; bytes: string }[];
}

// cost

export interface CostTable {
  command: string;
  algorithms: string[];
  rows: CostRow[];
}

export interface CostRow {
  k: number;
  ports: number;
  bound_c1: number;
  bound_c2: number;
  fewest: number | null;
  chosen: string;
  costs: Record<string, { c1: number; c2: number; c3: number; seconds: number }>;
}

// protect

/** What protecting a group takes, and bringing back its lost nodes. */
export interface Protection {
  /** As --network takes it. */
  network: string;
  protect: GroupCost;
  /** Where something is lost, and comes back. */
  recovery: GroupCost | null;
}

export interface GroupCost {
  stored_bytes: number;
  /** By the busiest node, or received. */
  sent_bytes: number;
  messages: number;
  rounds: number;
  model_seconds: number;
  plan: string;
}
