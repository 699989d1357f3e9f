/** The car's clock, and round trips to the car. Pure: times are passed in. */

import {median} from '../../lib/median.js';

const WINDOW_MS = 10_000;
const RECENT = 20;
/** Two clocks drift apart by less in 10 s. */
const DRIFT_MS = 20;

/** @typedef {{rttMs: number, offsetMs: number, atMs: number}} Sample */

/** Offset of the car's clock, by the fastest ping of the last 10 s. */
export class CarClock {
  constructor() {
    /** @type {Sample[]} */
    this.samples = [];
  }

  /**
   * Adds an answered ping; assumes that the car answered half way.
   * @param {number} sentMs @param {number} heardMs @param {number} carUs
   */
  add(sentMs, heardMs, carUs) {
    const rttMs = heardMs - sentMs;
    if (!(rttMs >= 0)) return;
    const offsetMs = carUs / 1000 - (sentMs + heardMs) / 2;
    // Each sample is off by half its round trip at most; else a phone's clock stood still.
    const best = this.best;
    const mostMs = DRIFT_MS + (rttMs + (best?.rttMs ?? 0)) / 2;
    if (best && Math.abs(offsetMs - best.offsetMs) > mostMs) this.reset();
    this.samples.push({rttMs, offsetMs, atMs: heardMs});
    while (this.samples[0].atMs < heardMs - WINDOW_MS) this.samples.shift();
  }

  /** Forgets all samples: a restarted car, or a clock that stood, counts from elsewhere. */
  reset() {
    this.samples = [];
  }

  /** The sample with the shortest round trip. @returns {Sample | null} */
  get best() {
    let best = null;
    for (const sample of this.samples) {
      if (!best || sample.rttMs <= best.rttMs) best = sample;
    }
    return best;
  }

  /**
   * Age of a frame stamped `captureUs`; null while the clock is unknown.
   * @param {number} captureUs @param {number} nowMs @returns {number | null}
   */
  ageMs(captureUs, nowMs) {
    const best = this.best;
    return best ? nowMs + best.offsetMs - captureUs / 1000 : null;
  }
}

/** Round trips of pings; one without an answer yet counts, too. */
export class RoundTrips {
  constructor() {
    /** @type {number[]} */
    this.tookMs = [];
    /** When the pings without a pong went out. @type {number[]} */
    this.waiting = [];
  }

  /** Forgets all pings: on a new socket the old pongs will not come. */
  reset() {
    this.tookMs = [];
    this.waiting = [];
  }

  /** @param {number} nowMs */
  sent(nowMs) {
    this.waiting.push(nowMs);
  }

  /** @param {number} sentMs @param {number} nowMs */
  answered(sentMs, nowMs) {
    this.tookMs.push(nowMs - sentMs);
    if (this.tookMs.length > RECENT) this.tookMs.shift();
    this.waiting = this.waiting.filter((oneMs) => oneMs > sentMs);
  }

  /**
   * The median of the last ones, or how long the oldest ping without a pong has waited,
   * if that is longer; null before the first.
   * @param {number} nowMs
   */
  ms(nowMs) {
    const middle = median(this.tookMs);
    return middle === null ? null : Math.max(middle, nowMs - (this.waiting[0] ?? nowMs));
  }
}
