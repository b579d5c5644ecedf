// Colours and dashes of curves: directions are told apart by both.

import type uPlot from "uplot";
import { placeOf } from "./names";

/** Number of curves of a picture that are named at most: of many connections, the rest is counted. */
export const MOST_NAMED = 8;

const OTHERS = ["--uplink", "--downlink", "--good", "--warn", "--bad", "--soft"];

function variable(full: string): string {
  const name = placeOf(full);
  if (name.endsWith("uplink")) return "--uplink";
  if (name.endsWith("downlink")) return "--downlink";
  if (!name.includes("/")) return "--ink";
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return OTHERS[sum % OTHERS.length]!;
}

export function colourOf(name: string): string {
  return `var(${variable(name)})`;
}

export function styleOf(full: string, css: (name: string) => string): uPlot.Series {
  const name = placeOf(full);
  const dash = name.endsWith("downlink") ? [] : [6, 3];
  const points = !name.startsWith("throughput") && !name.startsWith("offered");
  return {
    stroke: css(variable(name)),
    // A line of one pixel is drawn several times as fast as a wider one.
    width: 1,
    dash: name.startsWith("offered") ? [2, 3] : points ? [] : dash,
    spanGaps: true,
    points: { show: false },
  };
}
