/** The car's clock, as the page reckons it. Pure: times are passed in. */

const WINDOW_MS = 10_000;

/** @typedef {{rttMs: number, offsetMs: number, atMs: number}} Sample */

/** Clock offset of the fastest ping of the last 10 s, and how long pings take. */
export class CarClock {
  constructor() {
    /** @type {Sample[]} */
    this.samples = [];
  }

  /**
   * One answered ping. The car is taken to have answered half way.
   * @param {number} sentMs @param {number} heardMs @param {number} carUs
   */
  add(sentMs, heardMs, carUs) {
    const rttMs = heardMs - sentMs;
    if (!(rttMs >= 0)) return;
    const offsetMs = carUs / 1000 - (sentMs + heardMs) / 2;
    this.samples.push({rttMs, offsetMs, atMs: heardMs});
    while (this.samples[0].atMs < heardMs - WINDOW_MS) this.samples.shift();
  }

  /** A restarted car counts from elsewhere. */
  reset() {
    this.samples = [];
  }

  /** @returns {Sample | null} */
  get best() {
    let best = null;
    for (const sample of this.samples) {
      if (!best || sample.rttMs <= best.rttMs) best = sample;
    }
    return best;
  }

  /** The last round trip in ms, null before the first. @returns {number | null} */
  get rttMs() {
    return this.samples.at(-1)?.rttMs ?? null;
  }

  /**
   * How old something of the car is in ms; null while the clock is unknown.
   * @param {number} captureUs @param {number} nowMs @returns {number | null}
   */
  ageMs(captureUs, nowMs) {
    const best = this.best;
    return best ? nowMs + best.offsetMs - captureUs / 1000 : null;
  }
}
