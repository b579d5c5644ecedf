// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { Pace } from "../src/lib/frames";

/** Frames at a distance, for a time; returns its end. */
function frames(pace: Pace, from: number, distance: number, lasting: number): number {
  let now = from;
  for (; now < from + lasting; now += distance) pace.frame(now);
  return now;
}

test("frames in time are easy, and one pause changes nothing", () => {
  const pace = new Pace();
  const now = frames(pace, 0, 1000 / 60, 2_000);
  pace.frame(now + 60_000);
  frames(pace, now + 60_000, 1000 / 60, 1_000);
  expect(pace.easy).toBe(true);
});

test("late frames end that until they have come in time for a while", () => {
  const pace = new Pace();
  let now = frames(pace, 0, 60, 3_000);
  expect(pace.easy).toBe(false);
  now = frames(pace, now, 1000 / 60, 1_500);
  expect(pace.easy).toBe(false);
  frames(pace, now, 1000 / 60, 5_000);
  expect(pace.easy).toBe(true);
});

test("a machine that is late again and again is left alone for longer", () => {
  const pace = new Pace();
  let now = 0;
  const waits: number[] = [];
  for (let round = 0; round < 7; round++) {
    now = frames(pace, now, 60, 3_000);
    expect(pace.easy).toBe(false);
    const begin = now;
    while (!pace.easy) pace.frame((now += 1000 / 60));
    waits.push(now - begin);
  }
  expect(waits[1]!).toBeGreaterThan(waits[0]! + 4_000);
  expect(waits[6]!).toBeLessThan(61_000);
  expect(waits[6]!).toBeGreaterThan(50_000);
});
