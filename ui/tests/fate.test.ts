import { expect, test } from "vitest";
import { fatesOf, type Step } from "../src/lib/fate";

function step(time_ns: number, hop: string, kind: string, more: Partial<Step> = {}): Step {
  return { time_ns, hop, kind, direction: "uplink", stage: "", cause: "", bits: 0, queue_packets: 0, queue_bytes: 0, state: "", emitted_ns: null, ...more };
}

test("a packet waits, is sent twice and delivered", () => {
  const [radio, wire, ...rest] = fatesOf([
    step(100, "path", "offered"),
    step(100, "radio", "enqueued", { queue_packets: 3 }),
    step(700, "radio", "dequeued"),
    step(700, "radio", "frame_started"),
    step(900, "radio", "frame_sent"),
    step(950, "radio", "frame_lost"),
    step(1000, "radio", "frame_repeated"),
    step(1000, "radio", "frame_started"),
    step(1200, "radio", "frame_sent"),
    step(1300, "radio", "passed"),
    step(1300, "wire", "enqueued", { queue_packets: 1 }),
    step(1300, "wire", "dequeued"),
    step(1500, "path", "delivered"),
  ]);
  expect(rest).toEqual([]);
  expect(radio).toMatchObject({ hop: "radio", begin_ns: 100, end_ns: 1300, waited_ns: 600, behind: 2, frames: 2, lost: 1, repeated: 1, end: "passed" });
  expect(wire).toMatchObject({ hop: "wire", begin_ns: 1300, end_ns: 1500, waited_ns: 0, behind: 0, frames: 0, sending_ns: null, end: "delivered" });
});

test("a packet is dropped by a full queue", () => {
  expect(fatesOf([step(5, "path", "offered"), step(5, "radio", "dropped", { cause: "queue_packets" })])).toMatchObject([
    { hop: "radio", end: "dropped", cause: "queue_packets", waited_ns: null },
  ]);
});
