// What a form needs of the JSON Schema of scenarios: references resolved, variants told apart.

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
  | { kind: "text"; schema: Schema; patterns: RegExp[] }
  | { kind: "table"; schema: Schema; properties: Record<string, Schema>; required: string[] }
  | { kind: "variants"; schema: Schema; variants: Variant[]; text: RegExp[] | null }
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
  const numbers = choices.filter((one) => one.type === "number" || one.type === "integer");
  const constants = choices.filter((one) => typeof one.const === "string" || one.enum);
  const patterns = texts.flatMap((one) => (one.pattern ? [new RegExp(one.pattern)] : []));
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
    return { kind: "variants", schema, variants, text: texts.length || numbers.length ? patterns : null };
  }
  if (constants.length && constants.length === choices.length) {
    const words = constants.flatMap((one) => (one.enum ?? [one.const]) as Json[]).map(String);
    return { kind: "word", schema, words };
  }
  if (texts.length || numbers.length) {
    if (numbers.length) patterns.push(/^\s*[0-9_]*\.?[0-9]+(e-?[0-9]+)?\s*$/);
    for (const one of constants) patterns.push(new RegExp(`^${String(one.const)}$`));
    const examples = schema.examples ?? choices.flatMap((one) => one.examples ?? []);
    return { kind: "text", schema: { ...schema, examples }, patterns };
  }
  return { kind: "other", schema };
}

function ofOne(schema: Schema): Shape {
  if (schema.enum) return { kind: "word", schema, words: schema.enum.map(String) };
  if (schema.type === "boolean") return { kind: "flag", schema };
  if (schema.type === "number" || schema.type === "integer") return { kind: "number", schema };
  if (schema.type === "string") {
    return { kind: "text", schema, patterns: schema.pattern ? [new RegExp(schema.pattern)] : [] };
  }
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
