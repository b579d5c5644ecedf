// A course that plays over a run: its curves as steps, its route as a plan, the place at a time.

export interface CourseData {
  duration_s: number;
  times: number[];
  /** By "DIRECTION QUANTITY", such as "downlink rate"; null where the value before goes on. */
  values: Record<string, (number | null)[]>;
  states: [number, string][];
  /** Time in seconds, metres east, metres north. */
  route: [number, number, number][];
  thinned: boolean;
}
export interface DriveStatus {
  name?: string;
  t?: number;
  duration_s?: number;
  playing?: boolean;
  stopped?: boolean;
  speed?: number;
  place?: [number, number] | null;
  commands?: number;
  error?: string;
}

export const QUANTITIES = ["rate", "delay", "loss"] as const;
export type Quantity = (typeof QUANTITIES)[number];
const SCALE: Record<Quantity, [number, string]> = { rate: [1e-6, "Mbit/s"], delay: [1e3, "ms"], loss: [100, "%"] };

export function amount(quantity: Quantity, value: number): string {
  const [factor, unit] = SCALE[quantity];
  return `${Number((value * factor).toPrecision(3))} ${unit}`;
}

/** Index of the last of ascending times that is not after a time; -1 before the first. */
export function lastBefore(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Value of a column at a time: the last one that is given. */
export function valueAt(course: CourseData, name: string, time: number): number | null {
  const column = course.values[name] ?? [];
  for (let at = lastBefore(course.times, time); at >= 0; at--) if (column[at] !== null && column[at] !== undefined) return column[at]!;
  return null;
}

/** Place at a time, on the straight line between two points of the route. */
export function placeAt(route: CourseData["route"], time: number): [number, number] | null {
  if (!route.length) return null;
  const at = lastBefore(route.map((point) => point[0]), time);
  const one = route[Math.max(at, 0)]!;
  const other = route[Math.min(Math.max(at, 0) + 1, route.length - 1)]!;
  const share = other[0] > one[0] ? Math.min(Math.max((time - one[0]) / (other[0] - one[0]), 0), 1) : 0;
  return [one[1] + (other[1] - one[1]) * share, one[2] + (other[2] - one[2]) * share];
}

/** Corners of an SVG path that draws a column as steps; null without values. */
export function steps(course: CourseData, name: string, width: number, height: number, most: number): string | null {
  const x = (time: number) => (time / Math.max(course.duration_s, 1e-9)) * width;
  const y = (value: number) => height - (value / Math.max(most, 1e-12)) * height;
  let path = "";
  course.values[name]?.forEach((value, index) => {
    if (value === null) return;
    const place = x(course.times[index]!).toFixed(1);
    path += path ? `H${place}V${y(value).toFixed(1)}` : `M${place} ${y(value).toFixed(1)}`;
  });
  return path ? `${path}H${width}` : null;
}

export interface Plan {
  /** Origin and size of the part that is drawn, in metres; north is up. */
  left: number;
  top: number;
  width: number;
  height: number;
  /** Length of the scale's bar in metres. */
  bar: number;
}

/** Part of the plane that shows a whole route, with a margin. */
export function planOf(route: CourseData["route"]): Plan {
  let [west, east, south, north] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [, x, y] of route) {
    [west, east] = [Math.min(west, x), Math.max(east, x)];
    [south, north] = [Math.min(south, y), Math.max(north, y)];
  }
  const size = Math.max(east - west, north - south, 1);
  const margin = size * 0.12;
  // As wide as two thirds of the height at least, so that a straight street has room for its words.
  const width = Math.max(east - west, size / 2) + 2 * margin;
  const height = Math.max(north - south, size / 3) + 2 * margin;
  const third = 10 ** Math.floor(Math.log10(width / 3));
  const bar = [5, 2, 1].map((one) => one * third).find((one) => one <= width / 3) ?? third;
  return { left: (west + east - width) / 2, top: -(south + north + height) / 2, width, height, bar };
}

/** Time of the point of the route that is nearest to a place. */
export function timeNear(route: CourseData["route"], x: number, y: number): number {
  let [best, time] = [Infinity, 0];
  for (const [at, east, north] of route) {
    const distance = (east - x) ** 2 + (north - y) ** 2;
    if (distance < best) [best, time] = [distance, at];
  }
  return time;
}
