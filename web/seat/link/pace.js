/**
 * Does this device decode as fast as pictures come? Pure: counts and time in.
 *
 * One bad second is no news: a page that loads, a busy moment, a key frame. So it takes
 * most of the last eight, and five good ones in a row take it back.
 */

const SECONDS = 8;
const BAD_MOST = 5;
const GOOD_AGAIN = 5;
/** Share of the units put in; a greater loss is more than a skipped paint. */
const SHARE_LEAST = 0.6;
/** With fewer units per second the pace is unknown. */
const UNITS_LEAST = 10;
/** The page or its timers slept: ignore this second. */
const SECOND_MOST_MS = 1600;

/**
 * Since the page began: units that went into the decoder, pictures that came out, units
 * that it refused because too many waited.
 * @typedef {{fed: number, decoded: number, refused: number}} Counts
 */

export class Pace {
  constructor() {
    /** Was each of the last seconds bad? @type {boolean[]} */
    this.bad = [];
    /** @type {(Counts & {atMs: number}) | null} */
    this.last = null;
    this.slow = false;
    /** Time between two units, and between two pictures, of the last bad second. */
    this.intervalMs = 0;
    this.decodeMs = 0;
  }

  /**
   * Takes the counts of another second: is the device too slow?
   * @param {Counts} counts @param {number} nowMs
   */
  second(counts, nowMs) {
    const {last} = this;
    this.last = {...counts, atMs: nowMs};
    if (!last) return this.slow;
    const tookMs = nowMs - last.atMs;
    const fed = counts.fed - last.fed;
    if (tookMs > SECOND_MOST_MS || fed < UNITS_LEAST) {
      this.bad = [];
      this.slow = false;
      return false;
    }
    const decoded = counts.decoded - last.decoded;
    const bad = counts.refused > last.refused || decoded < SHARE_LEAST * fed;
    if (bad) {
      this.intervalMs = tookMs / fed;
      this.decodeMs = tookMs / Math.max(1, decoded);
    }
    this.bad = [...this.bad, bad].slice(-SECONDS);
    if (this.bad.filter(Boolean).length > BAD_MOST) this.slow = true;
    else if (!this.bad.slice(-GOOD_AGAIN).some(Boolean)) this.slow = false;
    return this.slow;
  }
}
