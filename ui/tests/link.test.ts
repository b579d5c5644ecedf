// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { bitsPerSecond, hopsOf, inWords, rateText, seconds, spanWords, statesOf } from "../src/lib/link";

test("a direction's values stand over those of both", () => {
  const [hop] = hopsOf({
    hops: [
      {
        link: { rate: "1 Mbit/s", errors: { type: "bernoulli", probability: 0.1 } },
        uplink: { rate: "64 kbit/s", errors: { probability: 0.2 } },
        downlink: { errors: { type: "none" } },
      },
    ],
  });
  expect(hop!.name).toBe("radio");
  expect(hop!.uplink).toEqual({ rate: "64 kbit/s", errors: { type: "bernoulli", probability: 0.2 } });
  expect(hop!.downlink).toEqual({ rate: "1 Mbit/s", errors: { type: "none" } });
});

test("hops without names are named by their places", () => {
  expect(hopsOf({ hops: [{}, { name: "wire" }] }).map((hop) => hop.name)).toEqual(["hop1", "wire"]);
  expect(hopsOf(null)).toEqual([]);
});

test("amounts are read and written", () => {
  expect(bitsPerSecond("64 kbit/s")).toBe(64_000);
  expect(bitsPerSecond("1_000 B/s")).toBe(8_000);
  expect(bitsPerSecond("unlimited")).toBeNull();
  expect(bitsPerSecond({ type: "steps" })).toBeNull();
  expect(rateText(2_400_000)).toBe("2.4 Mbit/s");
  expect(rateText(9600)).toBe("9.6 kbit/s");
  expect(seconds("20 ms")).toBeCloseTo(0.02);
  expect(seconds("2 min")).toBe(120);
  expect(seconds(5)).toBeNull();
});

test("states have their times", () => {
  expect(statesOf({ states: [{ name: "poor", at: "40 s", duration: "5 s" }, { name: "by hand" }] })).toEqual([
    { name: "poor", at_s: 40, duration_s: 5, drawn: false },
    { name: "by hand", at_s: null, duration_s: null, drawn: false },
  ]);
});

test("values are told in few words", () => {
  expect(inWords({ type: "tail_drop", limit: "7 packets" })).toBe("tail drop, 7 packets");
  expect(inWords({ type: "infinite" })).toBe("infinite");
  expect(inWords(undefined)).toBe("");
});

test("states say when they begin and end", () => {
  const words = (state: Record<string, string | Record<string, string>>) => spanWords(statesOf({ states: [state] })[0]!);
  expect(words({ name: "a", at: "40 s", duration: "5 s" })).toBe("40 to 45 s");
  expect(words({ name: "a", at: "100 ms", duration: "200 ms" })).toBe("0.1 to 0.3 s");
  expect(words({ name: "a", at: "1 min" })).toBe("from 60 s");
  expect(words({ name: "a", duration: "5 s" })).toBe("on command");
  expect(words({ name: "a", at: "1 s", duration: { type: "exponential", mean: "3 s" } })).toBe("from 1 s for a random time");
});
