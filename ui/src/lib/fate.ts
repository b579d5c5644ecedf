// The fate of a packet hop by hop: how long it waited, how often it was sent, what became of it.

import type { PacketWay } from "./types";

export type Step = PacketWay["way"][number];
export interface HopFate {
  hop: string;
  direction: string;
  /** When it came into the hop, and when it left it or was dropped; nanoseconds of the run. */
  begin_ns: number;
  end_ns: number;
  /** From entering the queue until leaving it; null if it never left. */
  waited_ns: number | null;
  /** Packets before it when it came. */
  behind: number | null;
  /** From the first frame's begin until the last frame's end. */
  sending_ns: number | null;
  frames: number;
  lost: number;
  repeated: number;
  damaged: boolean;
  /** delivered, passed, dropped, or empty where the run ended first. */
  end: string;
  cause: string;
}

/** Fates in the order of the hops; events of the path itself end the last hop. */
export function fatesOf(way: readonly Step[]): HopFate[] {
  const found: HopFate[] = [];
  let entered = way[0]?.time_ns ?? 0;
  for (const step of way) {
    if (step.hop === "path") {
      const last = found.at(-1);
      if (last && (step.kind === "delivered" || step.kind === "dropped") && !last.end)
        Object.assign(last, { end: step.kind, cause: step.cause, end_ns: step.time_ns });
      continue;
    }
    let hop = found.at(-1);
    if (!hop || hop.hop !== step.hop) {
      hop = { hop: step.hop, direction: step.direction, begin_ns: found.length ? step.time_ns : entered, end_ns: step.time_ns, waited_ns: null, behind: null, sending_ns: null, frames: 0, lost: 0, repeated: 0, damaged: false, end: "", cause: "" };
      found.push(hop);
    }
    hop.end_ns = Math.max(hop.end_ns, step.time_ns);
    if (step.kind === "enqueued") [entered, hop.behind] = [step.time_ns, Math.max(0, step.queue_packets - 1)];
    if (step.kind === "dequeued") hop.waited_ns = step.time_ns - entered;
    if (step.kind === "frame_started") {
      hop.frames++;
      hop.sending_ns ??= -step.time_ns;
    }
    if (step.kind === "frame_sent" && hop.sending_ns !== null) hop.sending_ns = hop.sending_ns < 0 ? step.time_ns + hop.sending_ns : hop.sending_ns;
    if (step.kind === "frame_lost") hop.lost++;
    if (step.kind === "frame_repeated") hop.repeated++;
    if (step.kind === "damaged" || step.kind === "truncated") hop.damaged = true;
    if (["passed", "delivered", "dropped"].includes(step.kind)) [hop.end, hop.cause] = [step.kind, step.cause];
  }
  for (const hop of found) if (hop.sending_ns !== null && hop.sending_ns < 0) hop.sending_ns = null;
  return found;
}
