/**
 * Chooses the remedy for a failed video path. Pure: events and time in, a remedy out.
 *
 *   rebuild   rebuild the same path, from the next key frame
 *   change    take the other path: this one failed FAULTS_MAX times within WINDOW_MS
 *
 * A decoder that takes units and gives no picture may report no error: `fed` notices. For a device
 * that is too slow, `Rate` chooses fewer pictures first.
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

/** The car's highest rate, and the wish of a page that shows all pictures. */
export const FPS_MOST = 120;
/** With fewer pictures a driver steers badly. */
const FPS_LEAST = 10;
/** A camera that sends more than this multiple of the requested rate keeps its own. */
const KEPT = 1.25;
/** Time for a new rate to arrive and to empty the decoder. */
const SETTLE_MS = 3000;
const AGAIN_MS = 20_000;
const AGAIN_MOST_MS = 320_000;

/** Chooses how many pictures a second a device asks for. Pure, like Remedy. */
export class Rate {
  constructor() {
    this.most = FPS_MOST;
    this.changedMs = -Infinity;
    this.behindMs = -Infinity;
    this.raised = false;
    this.againMs = AGAIN_MS;
  }

  /**
   * The device fell behind. True if a lower rate is chosen or under way; false if that is no help.
   * Once is no news, unless it is `sure`: the page may have slept.
   * @param {number} nowMs @param {number} fps pictures that arrive in a second @param {boolean} [sure]
   */
  behind(nowMs, fps, sure = false) {
    const sinceMs = nowMs - this.behindMs;
    this.behindMs = nowMs;
    if (nowMs - this.changedMs < SETTLE_MS || (!sure && sinceMs > WINDOW_MS)) return true;
    const next = Math.max(FPS_LEAST, Math.round(fps / 2));
    if (next >= Math.min(this.most, fps) || fps > KEPT * this.most) return false;
    this.againMs = this.raised ? Math.min(2 * this.againMs, AGAIN_MOST_MS) : AGAIN_MS;
    this.raised = false;
    this.most = next;
    this.changedMs = nowMs;
    return true;
  }

  /** The device keeps up: true if it may try a higher rate. @param {number} nowMs */
  keptUp(nowMs) {
    if (this.most === FPS_MOST || nowMs - this.changedMs < this.againMs) return false;
    this.most = 2 * this.most >= FPS_MOST / 2 ? FPS_MOST : 2 * this.most;
    this.raised = true;
    this.changedMs = nowMs;
    return true;
  }
}

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
