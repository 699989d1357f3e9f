/**
 * Shows recorded pictures by the same two paths as live ones.
 *
 * Each unit gets a time stamp that only rises, near the page's clock, so that both paths
 * see a camera that never goes back; `moments` maps the stamp to the moment of the drive.
 */

import {MsePath} from '../../video/mse.js';
import {supports} from '../../video/support.js';
import {WebCodecsPath} from '../../video/webcodecs.js';

/** More units than this do not go in: of the decoder, of fragments, of stamps. */
const QUEUE = 6;
const WAITING = 20;
const MOMENTS = 600;
/** Media time between two units that go in together; more than timeline.js's rounding. */
const STEP_US = 3000;
/** How long after its unit a picture should be on the glass. */
const SETTLE_MS = 150;
const SETTLES = 10;
/** After so many failures without a picture between, the other path is tried. */
const FAULTS_MAX = 3;

/** WebCodecs, where the pictures that lead up to a sought one are decoded and not shown. */
class SeekingPath extends WebCodecsPath {
  /** Pictures up to this stamp are not shown. */
  decodeOnlyUs = -1;

  /** @param {VideoFrame} picture */
  show(picture) {
    if (picture.timestamp > this.decodeOnlyUs) super.show(picture);
    else picture.close();
  }

  hasRoom() {
    return this.state.kind !== 'decoding' || this.state.decoder.decodeQueueSize < QUEUE;
  }
}

export class Picture {
  /**
   * @param {{canvas: HTMLCanvasElement, video: HTMLVideoElement, wanted: string | null,
   *   lost: () => void}} parts `lost`: the path needs a key frame
   */
  constructor({canvas, video, wanted, lost}) {
    this.canvas = canvas;
    this.video = video;
    this.needKey = lost;
    this.stampUs = 0;
    this.shownUs = 0;
    this.pushedMs = 0;
    this.settles = 0;
    this.faults = 0;
    this.shownCount = 0;
    /** The moment of the drive that is on the glass. @type {number | null} */
    this.shownS = null;
    /** @type {Map<number, number>} */
    this.moments = new Map();
    this.unsupported = !supports.webcodecs() && !supports.mse();
    /** @type {SeekingPath | MsePath | null} */
    this.path = null;
    if (!this.unsupported) this.use(supports.webcodecs() && (wanted !== 'mse' || !supports.mse()));
  }

  /** Takes WebCodecs, or else MSE, from now on. @param {boolean} webcodecs */
  use(webcodecs) {
    this.path?.close();
    const {canvas, video} = this;
    const shown = this.shown.bind(this);
    const lost = this.lost.bind(this);
    canvas.hidden = !webcodecs;
    video.hidden = webcodecs;
    this.path = webcodecs
      ? new SeekingPath({canvas, shown, lost, decoded: () => undefined, held: () => null})
      : new MsePath({video, shown, lost, leaving: () => undefined});
  }

  /** Takes a unit; false if it was dropped. @param {import('../types.js').Unit} unit @param {boolean} decodeOnly */
  push({timeS, key, unit}, decodeOnly) {
    const {path} = this;
    if (!path) return true;
    this.pushedMs = performance.now();
    this.settles = 0;
    const stampUs = Math.max(this.stampUs + STEP_US, Math.round(this.pushedMs * 1000));
    this.stampUs = stampUs;
    this.moments.set(stampUs, timeS);
    for (const old of this.moments.keys()) {
      if (this.moments.size <= MOMENTS) break;
      this.moments.delete(old);
    }
    if (decodeOnly && path instanceof SeekingPath) path.decodeOnlyUs = stampUs;
    return path.push({key, sequence: 0, captureUs: stampUs, unit});
  }

  hasRoom() {
    const {path} = this;
    if (!path || path instanceof SeekingPath) return !path || path.hasRoom();
    // A source that is opening keeps few units, and drops the others.
    const {state} = path;
    return (state.kind === 'opening' ? state.early : path.waiting).length < WAITING;
  }

  /**
   * Makes a media element seek to the last picture that it has: without another unit it
   * may stand before it for good. Call it with every paint.
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

  /** Notes the picture on the glass. @param {number} stampUs */
  shown(stampUs) {
    this.shownUs = stampUs;
    this.faults = 0;
    this.shownCount += 1;
    this.shownS = this.moments.get(stampUs) ?? this.shownS;
  }

  /** @param {string} fault */
  lost(fault) {
    console.warn(`recordings: ${fault}`);
    this.faults += 1;
    if (this.faults >= FAULTS_MAX) {
      this.faults = 0;
      const webcodecs = this.path instanceof SeekingPath;
      if (webcodecs ? supports.mse() : supports.webcodecs()) this.use(!webcodecs);
    }
    this.needKey();
  }

  /** Empties the glass, before another drive. */
  clear() {
    this.path?.rebuild();
    this.moments.clear();
    this.shownS = null;
    const {canvas} = this;
    canvas.getContext('2d', {alpha: false})?.clearRect(0, 0, canvas.width, canvas.height);
  }
}
