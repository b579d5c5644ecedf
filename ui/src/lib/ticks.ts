// Places and words of the ticks of an axis.

/** Round numbers between two, about as many as are wanted. */
export function ticksOf(low: number, high: number, wanted: number): number[] {
  const rough = Math.max(high - low, 1e-12) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) found.push(at * step);
  return found;
}

/** Bytes in a unit that fits a span of them. */
export function bytesTick(bytes: number, span: number): string {
  const [size, unit] = span >= 4e6 ? [1e6, " MB"] : span >= 4e3 ? [1e3, " kB"] : [1, ""];
  return `${Number((bytes / size).toPrecision(6))}${unit}`;
}
