// A scenario as the picture shows it: hops in a row, each direction with what holds there.

import { TEXT } from "../text";
import type { Json, Tree } from "./types";

export type Direction = "uplink" | "downlink";
export const DIRECTIONS: Direction[] = ["uplink", "downlink"];

export interface HopView {
  index: number;
  name: string;
  uplink: Tree;
  downlink: Tree;
}

function table(value: Json | undefined): Tree {
  return value && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** Tables of one direction over those of both, key by key; a table that names its type replaces. */
function over(both: Tree, one: Tree): Tree {
  const found: Tree = { ...both };
  for (const [key, value] of Object.entries(one)) {
    const below = found[key];
    const merges =
      value && typeof value === "object" && !Array.isArray(value) && !("type" in value) &&
      below && typeof below === "object" && !Array.isArray(below);
    found[key] = merges ? over(below as Tree, value as Tree) : value;
  }
  return found;
}

export function hopsOf(tree: Tree | null): HopView[] {
  const hops = Array.isArray(tree?.hops) ? tree.hops : [];
  return hops.map((each, index) => {
    const hop = table(each);
    const alone = hops.length === 1 ? "radio" : `hop${index + 1}`;
    return {
      index,
      name: typeof hop.name === "string" ? hop.name : alone,
      uplink: over(table(hop.link), table(hop.uplink)),
      downlink: over(table(hop.link), table(hop.downlink)),
    };
  });
}

export interface StateView {
  name: string;
  at_s: number | null;
  duration_s: number | null;
  /** True if the duration is drawn anew each time. */
  drawn: boolean;
}

export function statesOf(tree: Tree | null): StateView[] {
  const states = Array.isArray(tree?.states) ? tree.states : [];
  return states.map((each) => {
    const state = table(each);
    return { name: String(state.name ?? ""), at_s: seconds(state.at), duration_s: seconds(state.duration), drawn: Object.keys(table(state.duration)).length > 0 };
  });
}

/** Begin and end of a state in a few words. */
export function spanWords(state: StateView): string {
  if (state.at_s === null) return TEXT.build.stateByHand;
  const [begin, lasting] = [state.at_s, state.duration_s];
  const words = (time: number) => Number(time.toPrecision(6));
  if (state.drawn) return TEXT.build.stateDrawn(words(begin));
  return lasting === null ? TEXT.build.stateFrom(words(begin)) : TEXT.build.stateSpan(words(begin), words(begin + lasting));
}

const UNITS: Record<string, number> = { h: 3600, min: 60, s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };

export function seconds(value: Json | undefined): number | null {
  const found = typeof value === "string" ? /^\s*([\d_.]+)\s*(h|min|s|ms|us|µs|ns)\s*$/.exec(value) : null;
  return found ? Number(found[1]!.replaceAll("_", "")) * UNITS[found[2]!]! : null;
}

const RATES: [number, string][] = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const RATE_UNITS: Record<string, number> = {
  "Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1, "MB/s": 8e6, "kB/s": 8e3, "B/s": 8,
};

/** Bits a second of an amount such as "64 kbit/s"; null if it is no plain rate. */
export function bitsPerSecond(value: Json | undefined): number | null {
  const found = typeof value === "string" ? /^\s*([\d_.]+)\s*([GMk]?(?:bit|B)\/s)\s*$/.exec(value) : null;
  const unit = found ? RATE_UNITS[found[2]!] : undefined;
  return found && unit ? Number(found[1]!.replaceAll("_", "")) * unit : null;
}

export function rateText(bits: number): string {
  const [size, unit] = RATES.find(([least]) => bits >= least) ?? [1, "bit/s"];
  return `${Number((bits / size).toPrecision(3))} ${unit}`;
}

/** A value in a few words, for the picture. */
export function inWords(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `${value.length}`;
  const kind = value.type;
  if (typeof kind !== "string") return Object.entries(value).map(([key, each]) => `${key} ${inWords(each)}`).join(", ");
  const more = value.limit ?? value.probability ?? value.mean ?? value.file ?? value.name;
  return more === undefined ? kind.replaceAll("_", " ") : `${kind.replaceAll("_", " ")}, ${inWords(more)}`;
}
