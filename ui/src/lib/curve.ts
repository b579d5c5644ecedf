// One curve of a live view: all points go into stretches of time, each with its least and greatest
// value, so that drawing costs the same whatever comes. The latest points are kept singly too, for
// windows so short that single points can be seen.

const MOST_RAW = 1 << 18;
const MOST_STRETCHES = 1 << 15;

export class Curve {
  private times = new Float64Array(1024);
  private values = new Float64Array(1024);
  private first = 0;
  private count = 0;
  private width = 0.001;
  private stretches = new Map<number, [number, number]>();

  get length(): number {
    return this.count;
  }

  /** Time of the last point; -Infinity without one. */
  get end(): number {
    return this.count ? (this.times[(this.first + this.count - 1) % this.times.length] ?? 0) : -Infinity;
  }

  get last(): number | null {
    return this.count ? (this.values[(this.first + this.count - 1) % this.values.length] ?? null) : null;
  }

  add(times: readonly number[], values: readonly number[]): void {
    for (let index = 0; index < times.length; index++) {
      const time = times[index]!;
      const value = values[index]!;
      this.push(time, value);
      const stretch = Math.floor(time / this.width);
      const known = this.stretches.get(stretch);
      if (!known) this.stretches.set(stretch, [value, value]);
      else if (value < known[0]) known[0] = value;
      else if (value > known[1]) known[1] = value;
    }
    while (this.stretches.size > MOST_STRETCHES) this.coarsen();
  }

  private push(time: number, value: number): void {
    if (this.count === this.times.length && this.count < MOST_RAW) this.grow();
    const place = (this.first + this.count) % this.times.length;
    this.times[place] = time;
    this.values[place] = value;
    if (this.count < this.times.length) this.count++;
    else this.first = (this.first + 1) % this.times.length;
  }

  private grow(): void {
    const longer = (old: Float64Array) => {
      const grown = new Float64Array(old.length * 2);
      for (let index = 0; index < this.count; index++) grown[index] = old[(this.first + index) % old.length]!;
      return grown;
    };
    [this.times, this.values] = [longer(this.times), longer(this.values)];
    this.first = 0;
  }

  private coarsen(): void {
    this.width *= 2;
    const coarse = new Map<number, [number, number]>();
    for (const [stretch, [low, high]] of this.stretches) {
      const place = Math.floor(stretch / 2);
      const known = coarse.get(place);
      if (known) coarse.set(place, [Math.min(known[0], low), Math.max(known[1], high)]);
      else coarse.set(place, [low, high]);
    }
    this.stretches = coarse;
  }

  /** Points between two times: all of them, or at most two in each of `columns` stretches. */
  part(begin: number, end: number, columns: number): [number[], number[]] {
    const raw = this.raw(begin, end, columns * 2);
    if (raw) return raw;
    const wide = Math.max(this.width, (end - begin) / columns);
    const step = Math.ceil(wide / this.width);
    const times: number[] = [];
    const values: number[] = [];
    const from = Math.floor(begin / this.width / step) * step;
    const until = Math.ceil(end / this.width);
    for (let stretch = from; stretch < until; stretch += step) {
      let low = Infinity;
      let high = -Infinity;
      for (let inner = stretch; inner < stretch + step; inner++) {
        const known = this.stretches.get(inner);
        if (!known) continue;
        low = Math.min(low, known[0]);
        high = Math.max(high, known[1]);
      }
      if (low > high) continue;
      times.push(stretch * this.width);
      values.push(low);
      if (high > low) {
        times.push((stretch + step / 2) * this.width);
        values.push(high);
      }
    }
    return [times, values];
  }

  /** The single points between two times, and the one before them; null if there are more than `most`, or
   * not all are kept. */
  private raw(begin: number, end: number, most: number): [number[], number[]] | null {
    if (this.count === MOST_RAW && (this.times[this.first] ?? 0) > begin) return null;
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[(this.first + middle) % this.times.length]! < begin) low = middle + 1;
      else high = middle;
    }
    const times: number[] = [];
    const values: number[] = [];
    for (let index = Math.max(0, low - 1); index < this.count; index++) {
      const place = (this.first + index) % this.times.length;
      if (this.times[place]! > end) break;
      if (times.length > most) return null;
      times.push(this.times[place]!);
      values.push(this.values[place]!);
    }
    return [times, values];
  }
}
