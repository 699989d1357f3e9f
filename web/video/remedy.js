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
/** A unit counts as at most this: a camera that paused is no silent decoder. */
const UNIT_MOST_MS = 150;
/** H.264 without B-frames keeps at most so many units in the decoder. */
const HELD_MOST = 2;
const HELD_MS = 500;

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

  /** A unit went in. True if too many did since the last picture. @param {number} nowMs */
  fed(nowMs) {
    this.silentMs += Math.min(nowMs - this.fedMs, UNIT_MOST_MS);
    this.fedMs = nowMs;
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

/**
 * Detects a decoder that holds pictures until later units arrive. Pure: one per decoder.
 *
 * Some hardware decoders hold a whole GOP (w3c/webcodecs#528, #899).
 */
export class HeldPictures {
  constructor() {
    /** Time stamps of the units whose pictures have not come out. @type {number[]} */
    this.unitsUs = [];
    this.heldMs = 0;
    this.fedMs = -Infinity;
    this.proven = false;
  }

  /**
   * A unit goes in. True if pictures were held for HELD_MS of video. A decoder with units
   * in its queue is slow and holds none.
   * @param {number} captureUs @param {number} queued @param {number} nowMs
   */
  fed(captureUs, queued, nowMs) {
    const holds = queued === 0 && this.unitsUs.length > HELD_MOST;
    this.heldMs = holds ? this.heldMs + Math.min(nowMs - this.fedMs, UNIT_MOST_MS) : 0;
    this.fedMs = nowMs;
    this.unitsUs.push(captureUs);
    return this.heldMs > HELD_MS;
  }

  /** A picture came out. Earlier units without one were damaged. @param {number} captureUs */
  pictured(captureUs) {
    this.unitsUs.splice(0, this.unitsUs.indexOf(captureUs) + 1);
    this.proven = true;
  }
}
