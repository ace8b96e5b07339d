// What a schedule does, in one sentence.
import type { Plan } from "../lib/api";
import { count, number } from "../lib/format";

/** One sentence for the whole picture. */
export function summary(plan: Plan): string {
  const { rows, columns, processors: all, pieces } = plan.info;
  const rounds = count(plan.cost.c1, "round");
  const having = (list: unknown[][] | undefined, most: number) => list?.filter((x) => x.length > 0).length ?? most / pieces;
  const [sources, sinks] = [having(plan.detail?.inputs, rows), having(plan.detail?.outputs, columns)];
  if (all === 1) return "One machine has a packet of data, and multiplies it: there is nobody to send to.";
  const who = sources === 1 ? "1 machine has a packet of data." : `${number(sources)} machines have a packet of data each.`;
  if (sources === all && sinks === all) return `${who} In ${rounds} they send each other messages, until each has a mixture of all packets.`;
  return `${who} In ${rounds} of messages ${sinks === all ? `all ${number(all)} machines` : `${number(sinks)} of ${number(all)} machines`} get a mixture of all packets.`;
}
