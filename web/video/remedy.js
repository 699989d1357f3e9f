/**
 * What becomes of a way to the glass that fails. Pure: events and time in, a remedy out.
 *
 *   rebuild   the same way anew, from the next key frame
 *   change    the other way: this one failed FAULTS_MAX times within WINDOW_MS
 *
 * A decoder that takes units and gives no picture says nothing: `took` notices.
 */

const FAULTS_MAX = 3;
const WINDOW_MS = 15_000;
/** Units of so long a time without a picture; a first picture may take longer. */
const SILENT_MS = 800;
const START_MS = 1500;
/** A unit stands for no longer than this: a camera that paused is no silent decoder. */
const UNIT_MOST_MS = 150;

export class Remedy {
  constructor() {
    /** @type {number[]} */
    this.faultsMs = [];
    this.silentMs = 0;
    this.tookMs = -Infinity;
    this.proven = false;
  }

  /** Nothing is owed: a new decoder, or a page that slept. */
  rest() {
    this.silentMs = 0;
    this.tookMs = -Infinity;
    this.proven = false;
  }

  /** A unit went in. True: too many did since the last picture. @param {number} nowMs */
  took(nowMs) {
    this.silentMs += Math.min(nowMs - this.tookMs, UNIT_MOST_MS);
    this.tookMs = nowMs;
    return this.silentMs > (this.proven ? SILENT_MS : START_MS);
  }

  /** A picture came out. */
  gave() {
    this.silentMs = 0;
    this.proven = true;
  }

  /** @param {number} nowMs @returns {'rebuild' | 'change'} */
  failed(nowMs) {
    this.rest();
    this.faultsMs = this.faultsMs.filter((atMs) => nowMs - atMs < WINDOW_MS);
    this.faultsMs.push(nowMs);
    if (this.faultsMs.length < FAULTS_MAX) return 'rebuild';
    this.faultsMs = [];
    return 'change';
  }
}
