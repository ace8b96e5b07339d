// When messages are under way in the model: a round is as long as its time, and the messages of
// a processor leave one after the other, each while the ones before are under way.
import type { Plan } from "../lib/api";
import type { Schedule } from "./model";

export interface Pace {
  /** When rounds begin, and when the last one ends, in seconds. */
  starts: number[];
  /** By the id of a message: when it leaves and when all of it is there. */
  messages: Map<string, [leaves: number, arrives: number]>;
}

export function pace(s: Schedule): Pace {
  const { cost } = s.plan;
  const element = elementBytes(s.plan);
  const starts = [0];
  const messages = new Map<string, [number, number]>();
  for (const [t, list] of s.rounds.entries()) {
    const start = starts[t]!;
    const end = start + cost.times[t]!;
    const free = new Map<number, number>(); // when a processor's link can begin with the next
    for (const a of list) {
      const bytes = element * a.message.slots.length;
      let [leaves, arrives] = [start, start + cost.beta + bytes * cost.tau];
      if (cost.network) {
        const { latency, overhead, gap } = cost.network;
        leaves = free.get(a.message.src) ?? start;
        free.set(a.message.src, leaves + overhead + gap * bytes);
        arrives = leaves + overhead + latency + gap * bytes;
      }
      messages.set(a.id, [leaves, Math.min(arrives, end)]);
    }
    starts.push(end);
  }
  return { starts, messages };
}

/** An element is a packet or a piece. */
export function elementBytes(plan: Plan): number {
  return plan.cost.bytes / Math.max(1, plan.info.pieces);
}
