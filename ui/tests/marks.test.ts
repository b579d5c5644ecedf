// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { from } from "../src/lib/marks";

const at = (t: number) => ({ t, kind: "dropped", text: "", direction: "uplink" });

test("marks from a time on are all there, though some stand a little too early or late", () => {
  const marks = [1, 2, 3.2, 3, 4, 5].map(at);
  expect(from(marks, 3).map((one) => one.t)).toEqual([2, 3.2, 3, 4, 5]);
  expect(from(marks, 0)).toHaveLength(6);
  expect(from(marks, 9)).toHaveLength(0);
});
