// A run that is followed: its curves, marks and counters as the server sends them.

import { lines } from "./api";
import type { DriveStatus } from "./course";
import { Curve } from "./curve";
import type { Mark, Update } from "./types";

const MOST_MARKS = 4000;
/** Numbers change no more often than they can be read. */
const TELL_EVERY_MS = 250;

export class Feed {
  curves = new Map<string, Curve>();
  marks: Mark[] = [];
  end = 0;
  /** Counts up with each change, for drawings that look once a frame. */
  version = 0;
  names = $state<string[]>([]);
  drops = $state.raw<Record<string, number>>({});
  counts = $state.raw<Record<string, number>>({});
  state = $state<string | null>(null);
  users = $state<Record<string, string>>({});
  verdict = $state("");
  reasons = $state<string[]>([]);
  ended = $state(false);
  killed = $state(false);
  failure = $state("");
  /** The course that plays over the run, and when that was told. */
  drive = $state.raw<DriveStatus>({});
  driveArrived = performance.now();
  /** Counts up with each change of a state or a parameter, whoever made it. */
  changes = $state(0);
  rate = $state(0);
  private latest: { drops: Record<string, number>; counts: Record<string, number> } = { drops: {}, counts: {} };
  private told = -Infinity;
  private points = 0;
  private since = performance.now();
  /** Time of arrival of the last update, to let the window move on between updates. */
  private arrived = performance.now();

  async follow(run: number, signal: AbortSignal): Promise<void> {
    try {
      for await (const update of lines<Update>(`/api/runs/${run}/follow`, signal)) this.add(update);
    } catch (error) {
      if (!signal.aborted) this.failure = (error as Error).message;
    }
  }

  add(update: Update): void {
    if (update.error) this.failure = update.error;
    if (update.t !== undefined && update.t > this.end) {
      this.end = update.t;
      this.arrived = performance.now();
    }
    for (const [name, [times, values]] of Object.entries(update.curves ?? {})) {
      let curve = this.curves.get(name);
      if (!curve) {
        curve = new Curve();
        this.curves.set(name, curve);
        this.names = [...this.curves.keys()].sort();
      }
      curve.add(times, values);
      this.points += times.length;
    }
    if (update.marks?.length) this.marks = [...this.marks, ...update.marks].slice(-MOST_MARKS);
    if (update.marks?.some((mark) => mark.kind !== "dropped")) this.changes++;
    if (update.drive) [this.drive, this.driveArrived] = [update.drive, performance.now()];
    this.latest = { ...this.latest, ...(update.drops && { drops: update.drops }), ...(update.counts && { counts: update.counts }) };
    if (update.live && !update.live.gone) {
      this.state = update.live.state ?? null;
      this.users = update.live.users ?? {};
      this.verdict = update.live.verdict ?? "";
      this.reasons = update.live.reasons ?? [];
    }
    if (update.ended) [this.ended, this.killed] = [true, update.killed ?? false];
    const now = performance.now();
    if (now - this.told >= TELL_EVERY_MS || this.ended) {
      ({ drops: this.drops, counts: this.counts } = this.latest);
      this.told = now;
    }
    if (now - this.since >= 1000) {
      this.rate = (this.points / (now - this.since)) * 1000;
      [this.points, this.since] = [0, now];
    }
    this.version++;
  }

  /** The run's time now: that of the last update, and what has passed since. */
  get now(): number {
    return this.ended ? this.end : this.end + Math.min(0.5, (performance.now() - this.arrived) / 1000);
  }
}
