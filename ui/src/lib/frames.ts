// One loop of frames for all drawings of the page, and whether frames come in time.

const LATE_MS = 25;
const IN_TIME_MS = 18;
/** A longer pause, such as one in another tab, counts as this. */
const MOST_GAP_MS = 200;
/** Number of frames over which their distance is averaged. */
const FRAMES = 30;
const FIRST_WAIT_MS = 5_000;
const MOST_WAIT_MS = 60_000;

/** Judges from the times of frames whether the machine has time to spare. A machine that draws less has
 * more time, and would be asked for more at once: each time that frames come late again, it is left alone for
 * twice as long. */
export class Pace {
  private last = NaN;
  private gap = 1000 / 60;
  private since = 0;
  private wait = FIRST_WAIT_MS / 2;
  /** True while frames come in time. */
  easy = true;

  frame(now: number): void {
    if (!Number.isNaN(this.last)) this.gap += (Math.min(now - this.last, MOST_GAP_MS) - this.gap) / FRAMES;
    this.last = now;
    if (this.easy && this.gap > LATE_MS) {
      if (now - this.since > MOST_WAIT_MS) this.wait = FIRST_WAIT_MS / 2;
      this.wait = Math.min(this.wait * 2, MOST_WAIT_MS);
      [this.easy, this.since] = [false, now];
    } else if (!this.easy && this.gap < IN_TIME_MS && now - this.since > this.wait) {
      [this.easy, this.since] = [true, now];
    }
  }
}

const drawings = new Set<(pace: Pace) => void>();
const pace = new Pace();
let asked = 0;

function frame(now: number): void {
  pace.frame(now);
  for (const draw of drawings) draw(pace);
  asked = requestAnimationFrame(frame);
}

/** Calls a function in each frame; returns what ends that. */
export function eachFrame(draw: (pace: Pace) => void): () => void {
  if (!drawings.size) asked = requestAnimationFrame(frame);
  drawings.add(draw);
  return () => {
    drawings.delete(draw);
    if (!drawings.size) cancelAnimationFrame(asked);
  };
}
