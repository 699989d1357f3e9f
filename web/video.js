/**
 * One frame's way through the page:
 *
 *   link.js frame -> Video.frame -> parseVideo -> WebCodecsPath | MsePath -> Video.shown
 *
 * Chooses the path, notices gaps, asks for key frames, and counts what was shown.
 */

import {median} from './sparkline.js';
import {WireError, parseVideo} from './wire.js';

/** A picture older than this is not the present any more. */
export const OLD_MS = 500;
const KEY_EVERY_MS = 300;
const FAULTS_MAX = 5;
const RECENT = 300;

export class Video {
  /**
   * @param {{canvas: HTMLCanvasElement, video: HTMLVideoElement, wanted: string | null,
   *   requestKey: () => void, ageMs: (captureUs: number, nowMs: number) => number | null,
   *   picture: () => void}} parts `picture`: another one is on the glass
   */
  constructor(parts) {
    this.parts = parts;
    this.count = {shown: 0, dropped: 0, bytes: 0, keysAsked: 0};
    this.lastCaptureUs = 0;
    this.lastShownMs = 0;
    /** @type {number[]} */
    this.latencyMs = [];
    /** When the last pictures were shown. @type {number[]} */
    this.times = [];
    this.sequence = -1;
    this.newestUs = 0;
    this.keyAskedMs = -Infinity;
    this.faults = 0;
    this.fault = '';
    this.looking = true;
    /** @type {import('./types.js').PicturePath | null} */
    this.path = null;
    /** This browser can show nothing. */
    this.hopeless = false;
    void this.choose(parts.wanted);
  }

  /**
   * Only the path that is taken is loaded. VideoDecoder exists on https and localhost.
   * @param {string | null} wanted
   */
  async choose(wanted) {
    const {canvas, video} = this.parts;
    const shown = this.shown.bind(this);
    const lost = this.lost.bind(this);
    if (typeof VideoDecoder !== 'undefined' && wanted !== 'mse') {
      const {WebCodecsPath} = await import('./webcodecs.js');
      this.path = new WebCodecsPath({canvas, shown, lost});
    } else {
      const {MsePath} = await import('./mse.js');
      this.hopeless = !MsePath.available;
      if (!this.hopeless) this.path = new MsePath({video, shown, lost});
    }
    canvas.hidden = this.path?.name === 'mse';
    video.hidden = !canvas.hidden;
    this.askKey();
  }

  /** A new socket starts at a key frame. */
  restart() {
    this.sequence = -1;
    this.path?.reset();
  }

  /** A hidden page decodes nothing; on return it starts at a key frame. @param {boolean} on */
  look(on) {
    if (on === this.looking) return;
    this.looking = on;
    if (on) {
      this.restart();
      this.askKey();
    }
  }

  /** @param {ArrayBuffer} bytes */
  frame(bytes) {
    this.count.bytes += bytes.byteLength;
    if (!this.looking || !this.path) return;
    const frame = readOrNull(bytes);
    if (!frame) return;
    const follows = frame.sequence === ((this.sequence + 1) >>> 0);
    if (!frame.key && !follows) {
      // Decoding on would smear: wait for the key frame.
      this.count.dropped += 1;
      this.askKey();
      return;
    }
    this.sequence = frame.sequence;
    // The car was started anew: its clock counts from elsewhere.
    if (frame.captureUs < this.newestUs) this.path.reset();
    this.newestUs = frame.captureUs;
    if (!this.path.push(frame)) {
      this.count.dropped += 1;
      this.sequence = -2;
      this.askKey();
    }
  }

  /** @param {number} captureUs @param {number} shownMs */
  shown(captureUs, shownMs) {
    this.faults = 0;
    this.count.shown += 1;
    this.lastCaptureUs = captureUs;
    this.lastShownMs = shownMs;
    this.times.push(shownMs);
    if (this.times.length > RECENT) this.times.shift();
    const ageMs = this.parts.ageMs(captureUs, shownMs);
    if (ageMs !== null) this.latencyMs.push(Math.round(ageMs * 100) / 100);
    if (this.latencyMs.length > RECENT) this.latencyMs.shift();
    this.parts.picture();
  }

  /** The decoder lost its place. @param {string} fault */
  lost(fault) {
    console.warn(`video: ${fault}`);
    this.fault = fault;
    this.faults += 1;
    this.sequence = -2;
    if (this.faults >= FAULTS_MAX && this.path?.name === 'webcodecs') {
      this.path.close();
      this.path = null;
      void this.choose('mse');
    }
    this.askKey();
  }

  askKey() {
    const nowMs = performance.now();
    if (nowMs - this.keyAskedMs < KEY_EVERY_MS) return;
    this.keyAskedMs = nowMs;
    this.count.keysAsked += 1;
    this.parts.requestKey();
  }

  /** How old what is on the glass is; null before the first picture. @param {number} nowMs */
  ageMs(nowMs) {
    if (this.count.shown === 0) return null;
    // Never younger than its time on the glass: a car that was started anew counts from
    // zero, and its last picture would seem to come from the future.
    const ageMs = this.parts.ageMs(this.lastCaptureUs, nowMs) ?? 0;
    return Math.max(ageMs, nowMs - this.lastShownMs);
  }

  /** The picture's size in words. */
  get size() {
    const {canvas, video} = this.parts;
    const [width, height] = this.path?.name === 'mse'
      ? [video.videoWidth, video.videoHeight] : [canvas.width, canvas.height];
    return `${width}×${height}`;
  }

  /** Pictures shown in the last second. @param {number} nowMs */
  fps(nowMs) {
    return this.times.filter((shownMs) => shownMs > nowMs - 1000).length;
  }

  /** Capture to glass, the middle of the last second or so; null while unknown. */
  get pictureMs() {
    return median(this.latencyMs.slice(-30));
  }
}

/** @param {ArrayBuffer} bytes */
function readOrNull(bytes) {
  try {
    return parseVideo(bytes);
  } catch (fault) {
    if (!(fault instanceof WireError)) throw fault;
    console.warn(fault.message);
    return null;
  }
}
