// What a schedule does, in sentences.
import type { Plan } from "../lib/api";
import { bytes, count, number, seconds } from "../lib/format";
import { phaseOf } from "../lib/phases";
import type { Schedule } from "./model";
import { elementBytes } from "./pace";
import { about } from "./pieces";

/** One sentence for the whole picture. */
export function summary(plan: Plan): string {
  const { rows, columns, processors: all, pieces } = plan.info;
  const rounds = count(plan.cost.c1, "round");
  const having = (list: unknown[][] | undefined, most: number) => list?.filter((x) => x.length > 0).length ?? most / pieces;
  const [sources, sinks] = [having(plan.detail?.inputs, rows), having(plan.detail?.outputs, columns)];
  if (all === 1) return "One machine has a packet of data, and multiplies it: there is nobody to send to.";
  const who = sources === 1 ? "1 machine has a packet of data." : `${number(sources)} machines have a packet of data each.`;
  if (sources === all && sinks === all) return `${who} In ${rounds} they send each other messages, until each has ${mixture(plan)}.`;
  return `${who} In ${rounds} of messages ${sinks === all ? `all ${number(all)} machines` : `${number(sinks)} of ${number(all)} machines`} get ${mixture(plan)}.`;
}

/** How many packets are in a result, as far as the engine lists the matrix. */
function mixture({ detail }: Plan): string {
  const matrix = detail?.matrix;
  const counts = matrix?.[0]?.map((_, column) => matrix.filter((row) => row[column] !== "0").length) ?? [];
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (!matrix) return "its mixture of packets";
  if (least === matrix.length) return "a mixture of all packets";
  return least === most ? `a mixture of ${count(most, "packet")}` : `its mixture of ${least} to ${most} packets`;
}

/** What passes in a round: the one under way, or the last one. Of a processor in focus, what it sends and gets. */
export function guide(plan: Plan, drawn: Schedule | null, focus: number | null, position: number, moving: boolean): string {
  const round = moving ? position : position - 1;
  const { messages, largest_message } = plan.cost.rounds[round] ?? { messages: 0, largest_message: 0 };
  if (round < 0) return plan.cost.c1 === 0 ? "" : "Nobody has heard of another's packet. Play, or → for one round.";
  const head = `Round ${round}, ${phaseOf(plan.info.phases)[round]}, ${seconds(plan.cost.times[round] ?? 0)}:`;
  const element = elementBytes(plan);
  if (!drawn || focus === null) return `${head} ${count(messages, "message")} of ${bytes(element * largest_message)}${plan.aggregate.rounds[round]?.elements === messages * largest_message ? "" : " at most"}.`;
  const those = (end: "src" | "dst", verb: string) => {
    const list = drawn.rounds[round]!.map((a) => a.message).filter((m) => m[end] === focus);
    const most = Math.max(0, ...list.map((m) => m.slots.length));
    const labels = list.flatMap((m) => m.labels);
    return list.length === 0 ? `${verb} nothing` : `${verb} ${count(list.length, "message")} of ${bytes(element * most)}, ${about(labels, plan.info.pieces)}`;
  };
  return `${head} processor ${focus} ${those("src", "sends")}; and ${those("dst", "gets")}.`;
}
