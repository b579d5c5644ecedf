// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { Curve } from "../src/lib/curve";

function filled(count: number, perSecond: number): Curve {
  const curve = new Curve();
  const times = Array.from({ length: count }, (_, index) => index / perSecond);
  for (let at = 0; at < count; at += 1000) {
    const part = times.slice(at, at + 1000);
    curve.add(part, part.map((time) => Math.sin(time)));
  }
  return curve;
}

test("few points are given singly, in order, behind the one before", () => {
  const curve = new Curve();
  curve.add([1, 2, 3, 4], [10, 20, 30, 40]);
  expect(curve.part(1.5, 3.5, 100)).toEqual([[1, 2, 3], [10, 20, 30]]);
  expect(curve.end).toBe(4);
  expect(curve.last).toBe(40);
});

test("an empty curve has no points", () => {
  const curve = new Curve();
  expect(curve.part(0, 10, 100)).toEqual([[], []]);
  expect(curve.end).toBe(-Infinity);
  expect(curve.last).toBeNull();
});

test("a million points become two for each column, with the extremes kept", () => {
  const curve = filled(1_000_000, 10_000);
  curve.add([100.00001], [99]);
  const [times, values] = curve.part(40, 101, 500);
  expect(times.length).toBeLessThanOrEqual(1100);
  expect(Math.max(...values)).toBe(99);
  expect(Math.min(...values)).toBeCloseTo(-1, 3);
  expect(times.every((time, index) => index === 0 || time >= times[index - 1]!)).toBe(true);
});

test("the oldest points are forgotten singly, and their extremes stay", () => {
  const curve = filled(600_000, 10_000);
  const [times, values] = curve.part(0, 1, 200);
  expect(times.length).toBeGreaterThan(100);
  expect(Math.max(...values)).toBeCloseTo(Math.sin(1), 2);
  const [late] = curve.part(59.99, 60, 200);
  expect(late.length).toBe(101);
});

test("a short window late in a long run is as fine as at its begin", () => {
  const curve = new Curve();
  const parts = Array.from({ length: 3600 * 10 }, (_, index) => index / 10);
  for (const begin of parts) {
    const times = Array.from({ length: 50 }, (_, index) => begin + index / 500);
    curve.add(times, times.map((time) => Math.sin(time)));
  }
  const [times] = curve.part(3590, 3595, 200);
  expect(times.length).toBeGreaterThan(300);
  const [long, values] = curve.part(3300, 3600, 200);
  expect(long.length).toBeGreaterThan(300);
  expect(Math.max(...values)).toBeCloseTo(1, 3);
});

test("what is older than the longest window is forgotten, and silence is empty", () => {
  const curve = new Curve();
  const many = Array.from({ length: 20_000 }, (_, index) => index / 1000);
  curve.add(many, many.map(() => 5));
  curve.add([500], [7]);
  expect(curve.part(0, 499, 100)[0]).toEqual([]);
  expect(curve.part(490, 510, 100)).toEqual([[19.999, 500], [5, 7]]);
});

test("a point that comes late stands in its stretch", () => {
  const curve = new Curve();
  const many = Array.from({ length: 19_000 }, (_, index) => 10 + index / 1000);
  curve.add(many, many.map(() => 1));
  curve.add([9.5, 15], [9, 8]);
  const [times, values] = curve.part(9, 29, 100);
  expect(values[0]).toBe(9);
  expect(times[values.indexOf(8)]).toBeCloseTo(15, 0);
});
