// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type Schema, resolved, schemaRoot, setSchema, shapeOf } from "../src/lib/schema";

beforeAll(() => setSchema(JSON.parse(readFileSync("../schema/scenario.schema.json", "utf8")) as Schema));

function ofLink(key: string): Schema {
  return resolved({ $ref: "#/$defs/LinkConfig" }).properties![key]!;
}

test("kinds of a queue are told apart, with their parameters", () => {
  const shape = shapeOf(ofLink("queue"));
  if (shape.kind !== "variants") throw new Error(shape.kind);
  expect(shape.variants.map((one) => one.name)).toContain("codel");
  const codel = shape.variants.find((one) => one.name === "codel")!;
  expect(Object.keys(codel.properties)).toContain("target");
  expect(shape.text).toBeNull();
});

test("a rate is one value, or varies", () => {
  const shape = shapeOf(ofLink("rate"));
  if (shape.kind !== "variants") throw new Error(shape.kind);
  expect(shape.text!.some((one) => one.test("9600 bit/s"))).toBe(true);
  expect(shape.text!.some((one) => one.test("fast"))).toBe(false);
});

test("every parameter of every kind has a form or is left to the text", () => {
  const seen = { forms: 0, text: [] as string[] };
  const walk = (name: string, schema: Schema, depth: number): void => {
    const shape = shapeOf(schema);
    if (shape.kind === "other") seen.text.push(name);
    else seen.forms++;
    if (depth > 4) return;
    if (shape.kind === "table") for (const [key, each] of Object.entries(shape.properties)) walk(`${name}.${key}`, each, depth + 1);
    if (shape.kind === "variants") for (const one of shape.variants) for (const [key, each] of Object.entries(one.properties)) walk(`${name}.${one.name}.${key}`, each, depth + 1);
  };
  for (const [key, schema] of Object.entries(resolved({ $ref: "#/$defs/LinkConfig" }).properties!)) walk(key, schema, 0);
  expect(seen.forms).toBeGreaterThan(200);
  expect(seen.text.length / (seen.forms + seen.text.length)).toBeLessThan(0.1);
});

test("references that lead in a circle end", () => {
  const before = schemaRoot();
  setSchema({ $defs: { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } } });
  expect(shapeOf({ $ref: "#/$defs/A" }).kind).toBe("other");
  setSchema(before);
});
