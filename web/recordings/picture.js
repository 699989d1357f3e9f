/**
 * The page's own two ways to the glass, for pictures that are not live.
 *
 * Each unit gets a stamp that only rises, near the page's clock, so that both ways see a
 * camera that never goes back; `timeOf` knows which moment of the drive it was.
 */

import {MsePath} from '../video/mse.js';
import {supports} from '../video/support.js';
import {WebCodecsPath} from '../video/webcodecs.js';

/** @typedef {import('./types.js').Unit} Unit */

const QUEUE = 6;
const WAITING = 20;
const KNOWN = 600;
/** Media time between two units that go in together; more than timeline.js's rounding. */
const STEP_US = 3000;
/** So long after the last unit its picture should be on the glass. */
const SETTLE_MS = 150;
const SETTLES = 10;
/** So many failures without a picture between, and the other way is tried. */
const PATIENCE = 3;

/** The short way; pictures on the way to one that is sought are decoded and not shown. */
class Glass extends WebCodecsPath {
  hiddenUs = -1;

  /** @param {VideoFrame} picture */
  show(picture) {
    if (picture.timestamp > this.hiddenUs) super.show(picture);
    else picture.close();
  }

  room() {
    return this.state.kind !== 'decoding' || this.state.decoder.decodeQueueSize < QUEUE;
  }
}

export class Screen {
  /**
   * @param {{canvas: HTMLCanvasElement, video: HTMLVideoElement, wanted: string | null,
   *   lost: () => void}} parts `lost`: go on at a key frame
   */
  constructor({canvas, video, wanted, lost}) {
    this.canvas = canvas;
    this.video = video;
    this.lostPlace = lost;
    this.stampUs = 0;
    this.shownUs = 0;
    this.pushedMs = 0;
    this.settles = 0;
    this.faults = 0;
    this.shownCount = 0;
    /** The moment that is on the glass. @type {number | null} */
    this.shownS = null;
    /** @type {Map<number, number>} */
    this.known = new Map();
    this.hopeless = !supports.webcodecs() && !supports.mse();
    /** @type {Glass | MsePath | null} */
    this.path = null;
    if (!this.hopeless) this.take(supports.webcodecs() && (wanted !== 'mse' || !supports.mse()));
  }

  /** @param {boolean} short */
  take(short) {
    this.path?.close();
    const {canvas, video} = this;
    const shown = this.shown.bind(this);
    const lost = this.lost.bind(this);
    canvas.hidden = !short;
    video.hidden = short;
    this.path = short
      ? new Glass({canvas, shown, lost, decoded: () => undefined})
      : new MsePath({video, shown, lost, leaving: () => undefined});
  }

  /** @param {Unit} unit @param {boolean} hidden */
  push({timeS, key, unit}, hidden) {
    const {path} = this;
    if (!path) return true;
    this.pushedMs = performance.now();
    this.settles = 0;
    const stampUs = Math.max(this.stampUs + STEP_US, Math.round(this.pushedMs * 1000));
    this.stampUs = stampUs;
    this.known.set(stampUs, timeS);
    for (const old of this.known.keys()) {
      if (this.known.size <= KNOWN) break;
      this.known.delete(old);
    }
    if (hidden && path instanceof Glass) path.hiddenUs = stampUs;
    return path.push({key, sequence: 0, captureUs: stampUs, unit});
  }

  room() {
    const {path} = this;
    return path instanceof Glass ? path.room() : !path || path.waiting.length < WAITING;
  }

  /**
   * A media element that nothing follows may stand before the last picture that it has,
   * for good: it is made to seek to it. Call it with every paint.
   * @param {number} nowMs
   */
  settle(nowMs) {
    const {path, video} = this;
    if (!(path instanceof MsePath) || path.state.kind !== 'playing') return;
    if (this.shownUs === this.stampUs || this.settles >= SETTLES) return;
    if (nowMs - this.pushedMs < SETTLE_MS || video.seeking) return;
    if (path.state.buffer.updating || path.waiting.length > 0) return;
    this.pushedMs = nowMs;
    this.settles += 1;
    video.currentTime = path.timeline.newestS + STEP_US / 4e6;
  }

  /** @param {number} stampUs */
  shown(stampUs) {
    this.shownUs = stampUs;
    this.faults = 0;
    this.shownCount += 1;
    this.shownS = this.known.get(stampUs) ?? this.shownS;
  }

  /** @param {string} fault */
  lost(fault) {
    console.warn(`recordings: ${fault}`);
    this.faults += 1;
    if (this.faults >= PATIENCE) {
      this.faults = 0;
      const short = this.path instanceof Glass;
      if (short ? supports.mse() : supports.webcodecs()) this.take(!short);
    }
    this.lostPlace();
  }

  /** Another drive: what is on the glass is none of it. */
  clear() {
    this.path?.rebuild();
    this.known.clear();
    this.shownS = null;
    const {canvas} = this;
    canvas.getContext('2d', {alpha: false})?.clearRect(0, 0, canvas.width, canvas.height);
  }
}
