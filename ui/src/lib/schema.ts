// What a form needs of the JSON Schema of scenarios: references resolved, variants told apart.

import { TEXT } from "../text";
import type { Json, Tree } from "./types";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  default?: Json;
  examples?: Json[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  enum?: Json[];
  const?: Json;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  not?: Schema;
}

export interface Variant {
  name: string;
  description: string;
  properties: Record<string, Schema>;
  required: string[];
}

/** Kinds of input for a value. */
export type Shape =
  | { kind: "flag"; schema: Schema }
  | { kind: "word"; schema: Schema; words: string[] }
  | { kind: "number"; schema: Schema }
  | { kind: "text"; schema: Schema }
  | { kind: "table"; schema: Schema; properties: Record<string, Schema>; required: string[] }
  | { kind: "variants"; schema: Schema; variants: Variant[]; /** True if one value does, too. */ text: boolean }
  | { kind: "list"; schema: Schema; items: Schema }
  | { kind: "other"; schema: Schema };

let root: Schema = {};

export function setSchema(schema: Schema): void {
  root = schema;
}

export function schemaRoot(): Schema {
  return root;
}

/** The schema behind references; what stands beside a reference holds too. */
export function resolved(schema: Schema): Schema {
  let found = schema;
  for (let depth = 0; found.$ref && depth < 20; depth++) {
    const name = found.$ref.split("/").at(-1) ?? "";
    const { $ref: _, ...beside } = found;
    const target = root.$defs?.[name] ?? {};
    found = {
      ...target,
      ...beside,
      properties: { ...target.properties, ...beside.properties },
      required: [...new Set([...(target.required ?? []), ...(beside.required ?? [])])],
    };
    if (!Object.keys(found.properties ?? {}).length) delete found.properties;
    if (target.$ref) found.$ref = target.$ref;
  }
  return found;
}

function isNone(schema: Schema): boolean {
  return schema.const === "none" && (schema.description ?? "").startsWith("Takes the overridden");
}

function kindOf(schema: Schema): string | null {
  const type = schema.properties?.type;
  return typeof type?.const === "string" ? type.const : null;
}

function flattened(schema: Schema): Schema[] {
  const found = resolved(schema);
  const choices = found.oneOf ?? found.anyOf;
  if (!choices) return [found];
  return choices.filter((one) => !isNone(one)).flatMap((one) => flattened(one));
}

export function shapeOf(given: Schema): Shape {
  let schema = resolved(given);
  const choices = (schema.oneOf ?? schema.anyOf)?.filter((one) => !isNone(one));
  if (choices?.length === 1) {
    const inner = resolved(choices[0]!);
    schema = { ...inner, description: schema.description ?? inner.description ?? "" };
    if (given.default !== undefined) schema.default = given.default;
    if (inner.oneOf || inner.anyOf) return shapeOf(schema);
  } else if (choices) {
    return ofChoices(schema, choices.flatMap((one) => flattened(one)));
  }
  return ofOne(schema);
}

function ofChoices(schema: Schema, choices: Schema[]): Shape {
  const kinds = choices.filter((one) => kindOf(one));
  const texts = choices.filter((one) => one.type === "string" && one.const === undefined);
  const numbers = choices.filter(isNumber);
  const constants = choices.filter((one) => typeof one.const === "string" || one.enum);
  if (kinds.length) {
    const variants = kinds.map((one) => {
      const { type: _, ...properties } = one.properties ?? {};
      return {
        name: kindOf(one)!,
        description: one.description ?? "",
        properties,
        required: (one.required ?? []).filter((key) => key !== "type"),
      };
    });
    return { kind: "variants", schema, variants, text: texts.length + numbers.length > 0 };
  }
  if (constants.length && constants.length === choices.length) {
    const words = constants.flatMap((one) => (one.enum ?? [one.const]) as Json[]).map(String);
    return { kind: "word", schema, words };
  }
  if (texts.length || numbers.length) {
    const examples = schema.examples ?? choices.flatMap((one) => one.examples ?? []);
    return { kind: "text", schema: { ...schema, examples } };
  }
  return { kind: "other", schema };
}

function ofOne(schema: Schema): Shape {
  if (schema.enum) return { kind: "word", schema, words: schema.enum.map(String) };
  if (schema.type === "boolean") return { kind: "flag", schema };
  if (isNumber(schema)) return { kind: "number", schema };
  if (schema.type === "string") return { kind: "text", schema };
  if (schema.properties) {
    return { kind: "table", schema, properties: schema.properties, required: schema.required ?? [] };
  }
  if (schema.type === "array" && schema.items) return { kind: "list", schema, items: schema.items };
  return { kind: "other", schema };
}

/** A default as it is shown in an empty field. */
export function shown(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object") {
    const kind = (value as Tree).type;
    return typeof kind === "string" ? kind : JSON.stringify(value);
  }
  return String(value);
}

function isNumber(schema: Schema): boolean {
  return schema.type === "number" || schema.type === "integer";
}

/** True for a schema of values that a line of text can tell. */
function isScalar(schema: Schema): boolean {
  return schema.type === "string" || isNumber(schema) || schema.const !== undefined || schema.enum !== undefined;
}

function numberFits(schema: Schema, text: string): boolean {
  const value = text.trim() === "" ? NaN : Number(text);
  if (Number.isNaN(value) || (schema.type === "integer" && !Number.isInteger(value))) return false;
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = schema;
  return value >= minimum && value <= maximum && value > exclusiveMinimum && value < exclusiveMaximum;
}

/** Tells whether a text is a value of a schema. */
export function fits(schema: Schema, text: string): boolean {
  const scalars = flattened(schema).filter(isScalar);
  return !scalars.length || scalars.some((one) => {
    if (one.const !== undefined || one.enum) return (one.enum ?? [one.const]).map(String).includes(text.trim());
    if (isNumber(one)) return numberFits(one, text);
    return !one.pattern || new RegExp(one.pattern).test(text);
  });
}

function numberWords(schema: Schema): string {
  const whole = schema.type === "integer";
  const { minimum, maximum, exclusiveMinimum } = schema;
  if (exclusiveMinimum !== undefined) return TEXT.form.above(exclusiveMinimum, maximum, whole);
  if (minimum !== undefined) return maximum === undefined ? TEXT.form.least(minimum, whole) : TEXT.form.between(minimum, maximum, whole);
  return maximum === undefined ? TEXT.form.number(whole) : TEXT.form.most(maximum, whole);
}

/** Words on the values of a schema. The description of a definition is of its values; that of a parameter is
 * of what it does. */
function wordsOf(schema: Schema, named = false, depth = 0): string[] {
  if (schema.$ref) return depth < 20 ? wordsOf(root.$defs?.[schema.$ref.split("/").at(-1) ?? ""] ?? {}, true, depth + 1) : [];
  if (isNone(schema)) return [];
  const own = named && schema.description ? [schema.description.replace(/\s+/g, " ")] : [];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return own.length && flattened(schema).every(isScalar) ? own : choices.flatMap((one) => wordsOf(one, false, depth));
  if (!isScalar(schema)) return [];
  if (own.length) return own;
  if (isNumber(schema)) return [numberWords(schema)];
  if (schema.const !== undefined || schema.enum) return [TEXT.form.oneOf((schema.enum ?? [schema.const!]).map(String))];
  return schema.pattern?.includes("%") ? [TEXT.form.percentage] : [];
}

/** What fits a schema, with its units and range, and an example. */
export function fitting(schema: Schema): string {
  const words = [...new Set(wordsOf(schema))];
  const examples = [resolved(schema), ...flattened(schema)].flatMap((one) => one.examples ?? []);
  const scalar = examples.find((one) => typeof one !== "object" && fits(schema, String(one)));
  return [TEXT.form.or(words), scalar === undefined ? "" : `${TEXT.form.example(String(scalar))}.`].filter(Boolean).join(" ");
}
