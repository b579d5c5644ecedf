// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { fits, fitting, type Schema, resolved, schemaRoot, setSchema, shapeOf } from "../src/lib/schema";

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
  expect(shape.text).toBe(false);
});

test("a rate is one value, or varies", () => {
  const shape = shapeOf(ofLink("rate"));
  if (shape.kind !== "variants") throw new Error(shape.kind);
  expect(shape.text).toBe(true);
  expect(fits(ofLink("rate"), "9600 bit/s")).toBe(true);
  expect(fits(ofLink("rate"), "unlimited")).toBe(true);
  expect(fits(ofLink("rate"), "fast")).toBe(false);
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
  expect(fitting({ $ref: "#/$defs/A" })).toBe("");
  setSchema(before);
});

test("numbers fit within their range, and whole ones alone where the schema wants them", () => {
  const probability: Schema = { $ref: "#/$defs/Probability" };
  for (const text of ["0", "0.5", "1", "5e-3", "3 %", "12%"]) expect(fits(probability, text), text).toBe(true);
  for (const text of ["1.5", "-0.1", "much", "", "0x", "NaN"]) expect(fits(probability, text), text).toBe(false);
  const ports: Schema = { type: "integer", minimum: 1, maximum: 65535 };
  for (const text of ["1", "65535", " 80 "]) expect(fits(ports, text), text).toBe(true);
  for (const text of ["0", "65536", "1.5", " "]) expect(fits(ports, text), text).toBe(false);
  expect(fits({ type: "number", exclusiveMinimum: 0 }, "0")).toBe(false);
});

test("a value that does not fit is answered with units or range, and an example that fits", () => {
  expect(fitting(ofLink("rate"))).toMatch(/^A rate with its unit: bit\/s, kbit\/s, Mbit\/s.* For example 9600 bit\/s\.$/);
  expect(fitting({ $ref: "#/$defs/Span" })).toBe("A length of time with its unit: h, min, s, ms, us or ns. For example 200 ms.");
  expect(fitting({ $ref: "#/$defs/Probability" })).toBe("A probability: a number from 0 to 1, or a percentage. For example 0.01.");
  expect(fitting({ type: "integer", minimum: 1, maximum: 65535 })).toBe("A whole number from 1 to 65535.");
  expect(fitting({ type: "integer", minimum: 0 })).toBe("A whole number from 0 on.");
  expect(fitting({ type: "number", exclusiveMinimum: 0, maximum: 1000 })).toBe("A number above 0, 1000 at most.");
});

test("every field that can refuse a value says what fits", () => {
  const silent: string[] = [];
  let asked = 0;
  const walk = (name: string, schema: Schema, depth: number): void => {
    const shape = shapeOf(schema);
    const refuses = shape.kind === "number" || ((shape.kind === "text" || (shape.kind === "variants" && shape.text)) && !fits(schema, "\u0000"));
    if (refuses && ++asked && !fitting(schema)) silent.push(name);
    if (depth > 4) return;
    if (shape.kind === "table") for (const [key, each] of Object.entries(shape.properties)) walk(`${name}.${key}`, each, depth + 1);
    if (shape.kind === "variants") for (const one of shape.variants) for (const [key, each] of Object.entries(one.properties)) walk(`${name}.${one.name}.${key}`, each, depth + 1);
  };
  for (const [key, schema] of Object.entries(resolved({ $ref: "#/$defs/LinkConfig" }).properties!)) walk(key, schema, 0);
  expect(asked).toBeGreaterThan(100);
  expect(silent).toEqual([]);
});
