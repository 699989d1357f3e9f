/**
 * Chooses the remedy for a failed video path. Pure: events and time in, a remedy out.
 *
 *   rebuild   rebuild the same path, from the next key frame
 *   change    take the other path: this one failed FAULTS_MAX times within WINDOW_MS
 *
 * A decoder that takes units and gives no picture may report no error: `fed` notices.
 */

const FAULTS_MAX = 3;
const WINDOW_MS = 15_000;
/** So much video without a picture is a fault; a first picture may take longer. */
const SILENT_MS = 800;
const START_MS = 1500;
/** An intra refresh takes up to a few seconds until a picture is whole. */
const GRADUAL_MS = 8000;
/** A unit counts as at most this: a camera that paused is no silent decoder. */
const UNIT_MOST_MS = 150;

export class Remedy {
  constructor() {
    /** @type {number[]} */
    this.faultsMs = [];
    this.silentMs = 0;
    this.fedMs = -Infinity;
    this.proven = false;
  }

  /** Resets after a new decoder or a page's sleep. */
  reset() {
    this.silentMs = 0;
    this.fedMs = -Infinity;
    this.proven = false;
  }

  /**
   * A unit went in. True if too many did since the last picture.
   * @param {number} nowMs @param {boolean} [gradual] the decoder started at a recovery point
   */
  fed(nowMs, gradual = false) {
    this.silentMs += Math.min(nowMs - this.fedMs, UNIT_MOST_MS);
    this.fedMs = nowMs;
    if (gradual) return this.silentMs > GRADUAL_MS;
    return this.silentMs > (this.proven ? SILENT_MS : START_MS);
  }

  /** A picture came out. */
  pictured() {
    this.silentMs = 0;
    this.proven = true;
  }

  /** Returns the remedy for a failure. @param {number} nowMs @returns {'rebuild' | 'change'} */
  failed(nowMs) {
    this.reset();
    this.faultsMs = this.faultsMs.filter((atMs) => nowMs - atMs < WINDOW_MS);
    this.faultsMs.push(nowMs);
    if (this.faultsMs.length < FAULTS_MAX) return 'rebuild';
    this.faultsMs = [];
    return 'change';
  }
}
