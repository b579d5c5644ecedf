// Marks of what happened to a link, on the curves of its runs: states, parameters, resets.

import type uPlot from "uplot";
import type { Mark } from "./types";

/** Marks are nearly in order: those that a user sets stand a little before what comes next. */
const DISORDER_S = 1;

/** The marks from a time on. */
export function from(marks: readonly Mark[], time: number): readonly Mark[] {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle]!.t < time - DISORDER_S) low = middle + 1;
    else high = middle;
  }
  return marks.slice(low);
}

/** Draws a line with its word for each change of the link; words of several runs stand in rows of their own. */
export function drawStates(plot: uPlot, marks: readonly Mark[], colours: { ink: string; soft: string }, row = 0): void {
  const { left, top, height, width } = plot.bbox;
  const context = plot.ctx;
  context.save();
  context.fillStyle = colours.ink;
  context.strokeStyle = colours.soft;
  context.lineWidth = devicePixelRatio;
  context.font = `${11 * devicePixelRatio}px system-ui`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.setLineDash([4 * devicePixelRatio, (4 + 4 * row) * devicePixelRatio]);
  let free = left;
  for (const mark of marks) {
    if (mark.kind === "dropped") continue;
    const x = plot.valToPos(mark.t, "x", true);
    if (x < left || x > left + width) continue;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
    const words = context.measureText(mark.text).width;
    const start = x + 3 + words <= left + width ? x + 3 : x - 3 - words;
    // Words that would stand on those before them are left out; the line stays.
    if (start < free) continue;
    context.fillText(mark.text, start, top + (11 + 13 * row) * devicePixelRatio);
    free = start + 3 + words;
  }
  context.restore();
}
