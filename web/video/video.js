/**
 * One frame's way through the page:
 *
 *   link.js frame -> Video.frame -> parseVideo -> WebCodecsPath | MsePath -> Video.shown
 *
 * Chooses the path, notices gaps, asks for key frames, counts what was shown, and knows
 * how old that is. What becomes of a path that fails is remedy.js's.
 */

import {median} from '../lib/median.js';
import {WireError, parseVideo} from '../lib/wire.js';
import {Remedy} from './remedy.js';

/** A picture older than this is not the present any more. */
export const OLD_MS = 400;
const KEY_EVERY_MS = 300;
const LOAD_AGAIN_MS = 500;
const LOADS_MAX = 4;
const RECENT = 300;
/** A clock that is so little off is still right. */
const CLOCK_OFF_MS = 50;
/** HTMLMediaElement's, which Node has not. */
const HAVE_CURRENT_DATA = 2;

/** @typedef {import('../lib/types.js').PicturePath} PicturePath */

/** Which ways this browser has. VideoDecoder exists on https and localhost. */
const AVAILABLE = {
  webcodecs: () => 'VideoDecoder' in globalThis,
  mse: () => 'MediaSource' in globalThis || 'ManagedMediaSource' in globalThis,
};

export class Video {
  /**
   * @param {{canvas: HTMLCanvasElement, video: HTMLVideoElement, wanted: string | null,
   *   requestKey: () => void, ageMs: (captureUs: number, nowMs: number) => number | null,
   *   picture: () => void}} parts `picture`: another one is on the glass
   */
  constructor(parts) {
    this.parts = parts;
    this.count = {shown: 0, dropped: 0, bytes: 0, keysAsked: 0, faults: 0};
    this.lastCaptureUs = 0;
    this.lastShownMs = 0;
    /** When the picture on the glass was taken, by the page's clock. */
    this.bornMs = 0;
    this.bornSure = false;
    /** @type {number[]} */
    this.latencyMs = [];
    /** When the last pictures were shown. @type {number[]} */
    this.times = [];
    this.sequence = -1;
    this.keyAskedMs = -Infinity;
    this.remedy = new Remedy();
    this.fault = '';
    this.looking = true;
    /** @type {PicturePath | null} */
    this.path = null;
    const first = AVAILABLE.webcodecs() && parts.wanted !== 'mse' ? 'webcodecs' : 'mse';
    /** This browser can show nothing. */
    this.hopeless = !AVAILABLE[first]();
    if (!this.hopeless) void this.take(first);
  }

  /**
   * Takes a path. Only the one that is taken is loaded; a module that does not come
   * over a bad link is asked for again.
   * @param {PicturePath['name']} name
   */
  async take(name) {
    this.path?.close();
    this.path = null;
    this.remedy.rest();
    for (let tries = 0; !this.path; tries += 1) {
      try {
        this.path = await this.make(name, tries);
      } catch (fault) {
        this.note(`${name}: ${fault}`);
        if (tries >= LOADS_MAX) name = other(name) ?? name;
        await new Promise((resolve) => setTimeout(resolve, LOAD_AGAIN_MS));
      }
    }
    const {canvas, video} = this.parts;
    video.hidden = name !== 'mse';
    // On the way to the first picture of a <video> the canvas keeps the last one.
    canvas.hidden = name === 'mse' && this.count.shown === 0;
    this.askKey();
  }

  /** @param {PicturePath['name']} name @param {number} tries @returns {Promise<PicturePath>} */
  async make(name, tries) {
    const {canvas, video} = this.parts;
    const shown = this.shown.bind(this);
    const lost = this.lost.bind(this);
    // Some browsers remember a module that did not come; by another name they ask anew.
    const again = tries ? `?again=${tries}` : '';
    if (name === 'webcodecs') {
      /** @type {typeof import('./webcodecs.js')} */
      const {WebCodecsPath} = await import(`./webcodecs.js${again}`);
      const decoded = () => this.remedy.gave();
      return new WebCodecsPath({canvas, shown, lost, decoded});
    }
    /** @type {typeof import('./mse.js')} */
    const {MsePath} = await import(`./mse.js${again}`);
    return new MsePath({video, shown, lost, leaving: () => this.keepStill()});
  }

  /** The <video> is about to go black: the canvas before it keeps its last picture. */
  keepStill() {
    const {canvas, video} = this.parts;
    if (!canvas.hidden || video.readyState < HAVE_CURRENT_DATA) return;
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    canvas.getContext('2d', {alpha: false})?.drawImage(video, 0, 0);
    canvas.hidden = false;
  }

  /** A hidden page decodes nothing; on return it starts at a key frame. @param {boolean} on */
  look(on) {
    if (on === this.looking) return;
    this.looking = on;
    this.sequence = -1;
    this.remedy.rest();
    this.path?.reset();
    if (on) this.askKey();
  }

  /** @param {ArrayBuffer} bytes */
  frame(bytes) {
    this.count.bytes += bytes.byteLength;
    if (!this.looking || !this.path) return;
    const frame = this.readOrNull(bytes);
    if (!frame) return;
    const follows = frame.sequence === ((this.sequence + 1) >>> 0);
    if (!frame.key && !follows) {
      // Decoding on would smear: wait for the key frame.
      this.count.dropped += 1;
      this.askKey();
      return;
    }
    this.sequence = frame.sequence;
    if (!this.path.push(frame)) {
      this.count.dropped += 1;
      this.sequence = -2;
      this.askKey();
    } else if (this.remedy.took(performance.now())) {
      this.path.rebuild();
      this.lost(`${this.path.name}: units go in, no picture comes out`);
    }
  }

  /** @param {number} captureUs @param {number} shownMs */
  shown(captureUs, shownMs) {
    this.remedy.gave();
    this.count.shown += 1;
    this.lastCaptureUs = captureUs;
    this.lastShownMs = shownMs;
    this.times.push(shownMs);
    if (this.times.length > RECENT) this.times.shift();
    const ageMs = this.parts.ageMs(captureUs, shownMs);
    this.bornSure = ageMs !== null && ageMs > -CLOCK_OFF_MS;
    this.bornMs = shownMs - Math.max(0, ageMs ?? 0);
    if (ageMs !== null) this.latencyMs.push(Math.round(ageMs * 100) / 100);
    if (this.latencyMs.length > RECENT) this.latencyMs.shift();
    if (this.path?.name === 'mse') this.parts.canvas.hidden = true;
    this.parts.picture();
  }

  /** A path failed and has begun anew: it needs a key frame. @param {string} fault */
  lost(fault) {
    this.note(fault);
    this.sequence = -2;
    // Browsers take decoders away from pages that sleep: that is no fault of theirs.
    if (!this.looking) return;
    this.count.faults += 1;
    const next = this.path && other(this.path.name);
    if (this.remedy.failed(performance.now()) === 'change' && next) void this.take(next);
    this.askKey();
  }

  /** @param {string} fault */
  note(fault) {
    console.warn(`video: ${fault}`);
    this.fault = fault;
  }

  askKey() {
    const nowMs = performance.now();
    if (nowMs - this.keyAskedMs < KEY_EVERY_MS) return;
    this.keyAskedMs = nowMs;
    this.count.keysAsked += 1;
    this.parts.requestKey();
  }

  /**
   * How old what is on the glass is, capture to now; null before the first picture.
   * Never younger than its time on the glass: a car that was started anew counts from
   * zero, and its last picture would seem to come from the future.
   * @param {number} nowMs
   */
  ageMs(nowMs) {
    if (this.count.shown === 0) return null;
    const ageMs = this.parts.ageMs(this.lastCaptureUs, nowMs) ?? 0;
    return Math.max(ageMs, nowMs - this.bornMs);
  }

  /** Is `ageMs` the age, or only the least that it can be? @param {number} nowMs */
  ageSure(nowMs) {
    const ageMs = this.parts.ageMs(this.lastCaptureUs, nowMs);
    return this.bornSure ||
      (ageMs !== null && ageMs > nowMs - this.lastShownMs - CLOCK_OFF_MS);
  }

  /** Width and height of the picture. @returns {[number, number]} */
  get size() {
    const {canvas, video} = this.parts;
    return this.path?.name === 'mse' && canvas.hidden
      ? [video.videoWidth, video.videoHeight] : [canvas.width, canvas.height];
  }

  /** Pictures shown in the last second. @param {number} nowMs */
  fps(nowMs) {
    return this.times.filter((shownMs) => shownMs > nowMs - 1000).length;
  }

  /** Capture to glass, the middle of the last second or so; null while unknown. */
  get pictureMs() {
    return median(this.latencyMs.slice(-30));
  }

  /** @param {ArrayBuffer} bytes */
  readOrNull(bytes) {
    try {
      return parseVideo(bytes);
    } catch (fault) {
      if (!(fault instanceof WireError)) throw fault;
      this.note(fault.message);
      return null;
    }
  }
}

/** @param {PicturePath['name']} name @returns {PicturePath['name'] | null} */
function other(name) {
  const next = name === 'mse' ? 'webcodecs' : 'mse';
  return AVAILABLE[next]() ? next : null;
}
