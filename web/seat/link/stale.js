/**
 * Bounds the age of data queued between car and page. Pure.
 *
 * The car sees no further than the browser's kernel. A page on an overloaded computer reads
 * its sockets more slowly than pictures come, and megabytes of them wait there, all of them
 * acknowledged. A new connection leaves that queue behind.
 */

/** More than the car itself may queue: 1 s, for a camera without key frames on request. */
const STALE_MS = 2000;
/** Where a new connection does not help, as behind a slow encoder, try more and more rarely. */
const AGAIN_MS = 3000;
const AGAIN_MOST_MS = 60_000;
const CAPTURE_AT = 8;

export class StaleQueue {
  constructor() {
    this.renewedMs = -Infinity;
    this.pauseMs = AGAIN_MS;
  }

  /**
   * A picture came. True: it is so old that its connection should be replaced.
   * @param {number | null} ageMs null while the car's clock is unknown
   * @param {number} rttMs @param {number} nowMs
   */
  arrived(ageMs, rttMs, nowMs) {
    if (ageMs === null) return false;
    if (ageMs <= STALE_MS + 2 * rttMs) {
      if (nowMs - this.renewedMs >= this.pauseMs) this.pauseMs = AGAIN_MS;
      return false;
    }
    if (nowMs - this.renewedMs < this.pauseMs) return false;
    const soon = nowMs - this.renewedMs < 2 * this.pauseMs;
    this.pauseMs = soon ? Math.min(2 * this.pauseMs, AGAIN_MOST_MS) : AGAIN_MS;
    this.renewedMs = nowMs;
    return true;
  }
}

/** Capture time of a /ws/video frame in us; null for one that is too short. @param {ArrayBuffer} frame */
export function captureUs(frame) {
  return frame.byteLength < CAPTURE_AT + 8 ? null
    : Number(new DataView(frame).getBigUint64(CAPTURE_AT, true));
}
