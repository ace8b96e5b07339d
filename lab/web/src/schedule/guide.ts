// What is seen, in words: of the whole schedule, and of the round that has passed last.
import type { Plan } from "../lib/api";
import { count, number } from "../lib/format";
import { carried, type Arrow, type Schedule } from "./model";
import { aboutPieces } from "./pieces";

/** One sentence for the whole picture. */
export function summary(plan: Plan): string {
  const { rows, columns, processors: all, pieces } = plan.info;
  const rounds = count(plan.cost.c1, "round");
  const { sources, sinks } = plan.detail ? parts({ plan, detail: plan.detail }) : { sources: rows / pieces, sinks: columns / pieces };
  if (all === 1) return "One machine has a packet of data, and multiplies it: there is nobody to send to.";
  const who = sources === 1 ? "1 machine has a packet of data." : `${number(sources)} machines have a packet of data each.`;
  if (sources === all && sinks === all) return `${who} In ${rounds} they send each other messages, until each has a mixture of all packets.`;
  return `${who} In ${rounds} of messages ${sinks === all ? `all ${number(all)} machines` : `${number(sinks)} of ${number(all)} machines`} get a mixture of all packets.`;
}

/** What one sees once so many rounds have passed. */
export function says(s: Schedule, time: number): string {
  if (time === 0) return start(s);
  return round(s, s.rounds[time - 1] ?? [], time - 1) + (time === s.rounds.length ? ` ${end(s)}` : "");
}

function parts({ plan, detail }: Pick<Schedule, "plan" | "detail">) {
  const having = (list: unknown[][]) => list.filter((x) => x.length > 0).length;
  return { sources: having(detail.inputs), sinks: having(detail.outputs), all: plan.info.processors };
}

function start(s: Schedule): string {
  const { sources, sinks, all } = parts(s);
  const last = all - 1;
  const who = sources === all
    ? `Each circle at the top is a processor: a machine with a packet of data, x0 to x${last}.`
    : `Each circle at the top is a processor, a machine. ${sources} of them have a packet of data.`;
  const what = sinks === all
    ? `The circles below are the same machines at the end. Each then has a coded packet, y0 to y${last}: a mixture of all packets.`
    : `The circles below are the same machines at the end. ${sinks} of them then have a coded packet: a mixture of all packets.`;
  const { pieces } = s.plan.info;
  return `${who} ${what}${pieces > 1 ? ` Every packet is cut in ${pieces} pieces.` : ""}`;
}

function round(s: Schedule, arrows: Arrow[], t: number): string {
  const first = arrows[0];
  if (!first) return `Round ${t}: no processor sends.`;
  const { src, dst } = first.message;
  return `Round ${t}, ${s.phases[t]}: ${count(arrows.length, "message")}${t === 0 ? ", all at the same time" : ""}. Processor ${src} sends processor ${dst} ${contents(s, first)}.`;
}

function contents(s: Schedule, a: Arrow): string {
  const slots = carried(s.detail, a.message);
  if (s.plan.info.pieces > 1) return aboutPieces(s.detail, slots);
  const [slot] = slots;
  if (!slot || slots.length > 1) {
    const sum = slots.find((x) => x.rows.length > 1);
    return sum ? `${slots.length} sums. ${sum.label} is what the packets in brackets add to ${sum.label.split("(")[0]}` : `${slots.length} packets`;
  }
  if (slot.kind === "input") return `its packet ${slot.label}`;
  if (slot.rows.length === 1) return `the packet ${slot.label}`;
  return `the sum ${slot.label}: as short as one packet, with a part of ${slot.rows.length} packets in it`;
}

function end(s: Schedule): string {
  const { cost, info } = s.plan;
  const { sources, sinks, all } = parts(s);
  if (sources < all || sinks < all) return "Every result is complete.";
  const direct = Math.ceil((all - 1) / info.ports);
  const done = `Each processor has its result. The largest messages of the rounds have ${count(cost.packets_c2, "packet")} together`;
  if (cost.packets_c2 >= direct) return `${done}, as many as if each processor sent its packet to all others.`;
  return `${done}. If each processor sent its packet to all others, these would be ${number(direct)}: sums save the rest.`;
}
