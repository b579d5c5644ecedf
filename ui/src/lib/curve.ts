// One curve of a live view. All points go into stretches of time, each with its least and greatest value,
// so that drawing costs the same whatever comes. The latest points are kept singly too, for windows so short
// that single points can be seen. What is older than the longest window is forgotten.

/** Longest window that a curve is drawn in. */
export const MOST_WINDOW_S = 300;
const STRETCH_S = 0.01;
const FIRST_SIZE = 1 << 10;
const MOST_RAW = 1 << 13;
/** The next power of two above the stretches of the longest window. */
const MOST_STRETCHES = 1 << Math.ceil(Math.log2(MOST_WINDOW_S / STRETCH_S));

export class Curve {
  private times = new Float64Array(FIRST_SIZE);
  private values = new Float64Array(FIRST_SIZE);
  private first = 0;
  private count = 0;
  /** Least and greatest values of stretches, each at the place of its number modulo the size. */
  private low = new Float32Array(FIRST_SIZE).fill(Infinity);
  private high = new Float32Array(FIRST_SIZE).fill(-Infinity);
  private oldest = Infinity;
  private newest = -Infinity;

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
      const stretch = Math.floor(time / STRETCH_S);
      if (stretch !== this.newest) this.reach(stretch);
      if (stretch < this.oldest) continue;
      const place = stretch & (this.low.length - 1);
      if (value < this.low[place]!) this.low[place] = value;
      if (value > this.high[place]!) this.high[place] = value;
    }
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

  /** Makes room for a stretch, and empties those between it and the ones before. */
  private reach(stretch: number): void {
    if (this.newest === -Infinity) [this.oldest, this.newest] = [stretch, stretch];
    if (stretch <= this.newest) {
      if (this.newest - stretch < this.low.length) this.oldest = Math.min(this.oldest, stretch);
      return;
    }
    while (stretch - this.oldest >= this.low.length && this.low.length < MOST_STRETCHES) this.widen();
    const size = this.low.length;
    for (let each = Math.max(this.newest + 1, stretch - size + 1); each <= stretch; each++) {
      this.low[each & (size - 1)] = Infinity;
      this.high[each & (size - 1)] = -Infinity;
    }
    this.newest = stretch;
    this.oldest = Math.max(this.oldest, stretch - size + 1);
  }

  private widen(): void {
    const size = this.low.length;
    const wider = (old: Float32Array, empty: number) => {
      const grown = new Float32Array(size * 2).fill(empty);
      for (let each = this.oldest; each <= this.newest; each++) grown[each & (size * 2 - 1)] = old[each & (size - 1)]!;
      return grown;
    };
    [this.low, this.high] = [wider(this.low, Infinity), wider(this.high, -Infinity)];
  }

  /** Points between two times: all of them, or at most two in each of `columns` stretches. */
  part(begin: number, end: number, columns: number): [number[], number[]] {
    const raw = this.raw(begin, end, columns * 2);
    if (raw) return raw;
    const step = Math.max(1, Math.ceil((end - begin) / columns / STRETCH_S));
    const times: number[] = [];
    const values: number[] = [];
    const mask = this.low.length - 1;
    const until = Math.min(this.newest + 1, Math.ceil(end / STRETCH_S));
    for (let stretch = Math.floor(begin / STRETCH_S / step) * step; stretch < until; stretch += step) {
      let low = Infinity;
      let high = -Infinity;
      const last = Math.min(stretch + step, until);
      for (let inner = Math.max(stretch, this.oldest); inner < last; inner++) {
        if (this.low[inner & mask]! < low) low = this.low[inner & mask]!;
        if (this.high[inner & mask]! > high) high = this.high[inner & mask]!;
      }
      if (low > high) continue;
      times.push(stretch * STRETCH_S);
      values.push(low);
      if (high > low) {
        times.push((stretch + step / 2) * STRETCH_S);
        values.push(high);
      }
    }
    return [times, values];
  }

  /** The single points between two times, and the one before them; null if there are more than `most`, or
   * not all are kept. */
  private raw(begin: number, end: number, most: number): [number[], number[]] | null {
    if (this.count === MOST_RAW && (this.times[this.first] ?? 0) > begin) return null;
    const low = Math.max(0, this.before(begin) - 1);
    if (low + most < this.count && this.times[(this.first + low + most) % this.times.length]! <= end) return null;
    const times: number[] = [];
    const values: number[] = [];
    for (let index = low; index < this.count; index++) {
      const place = (this.first + index) % this.times.length;
      if (this.times[place]! > end) break;
      times.push(this.times[place]!);
      values.push(this.values[place]!);
    }
    return [times, values];
  }

  /** Number of the points before a time. */
  private before(time: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[(this.first + middle) % this.times.length]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
