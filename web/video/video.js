/** Shows pictures: chooses a path, requests key frames, tracks the picture's age.
 * docs/architecture.md follows a frame; remedy.js handles a failed path. */

import {median} from '../lib/median.js';
import {WireError, parseVideo} from '../lib/wire.js';
import {Rate, Remedy} from './remedy.js';
import {HAVE_CURRENT_DATA, supports} from './support.js';

/** @import {PicturePath} from '../lib/types.js' */

/** A picture older than this is shown as old. */
export const OLD_MS = 400;
const KEY_EVERY_MS = 300;
const LOAD_AGAIN_MS = 500;
const LOADS_MAX = 4;
const RECENT = 300;
/** Units that measure the rate. */
const RATE_UNITS = 30;
/** An age may be negative by this much before the clock counts as wrong. */
const CLOCK_OFF_MS = 50;
/** So many failures without a picture in between: a person is told. */
const FAULTS_TOLD = 3;

export class Video {
  /**
   * @param {{canvas: HTMLCanvasElement, video: HTMLVideoElement, wanted: string | null,
   *   requestKey: () => void, requestFps?: (most: number) => void, ageMs: (captureUs: number, nowMs: number) => number | null,
   *   changed: () => void}} parts `changed`: a new picture is on the glass
   */
  constructor(parts) {
    this.parts = parts;
    this.count = {
      shown: 0, dropped: 0, bytes: 0, keysAsked: 0, faults: 0, fed: 0, decoded: 0, refused: 0,
    };
    this.lastCaptureUs = 0;
    this.lastShownMs = 0;
    /** When the picture on the glass was captured, by the page's clock. */
    this.capturedMs = 0;
    /** Was the car's clock known then? */
    this.capturedSure = false;
    /** @type {number[]} */
    this.latencyMs = [];
    /** When the last pictures were shown. @type {number[]} */
    this.times = [];
    this.sequence = -1;
    this.keyAskedMs = -Infinity;
    this.remedy = new Remedy();
    this.rate = new Rate();
    /** When the last units arrived. @type {number[]} */
    this.arrivedMs = [];
    /** Loads after the first screen. @type {import('./held.js').HeldRemedy | null} */
    this.held = null;
    this.fault = '';
    /** Failures since the last picture. */
    this.faultsInRow = 0;
    /** The browser plays only after a tap. */
    this.blocked = false;
    this.visible = true;
    /** @type {PicturePath | null} */
    this.path = null;
    const first = supports.webcodecs() && parts.wanted !== 'mse' ? 'webcodecs' : 'mse';
    /** This browser can show no video. */
    this.unsupported = !supports[first]();
    if (!this.unsupported) void this.use(first);
  }

  /**
   * Loads a path and uses it; tries again if its module does not arrive.
   * @param {PicturePath['name']} name
   */
  async use(name) {
    this.path?.close();
    this.path = null;
    this.remedy.reset();
    for (let tries = 0; !this.path; tries += 1) {
      try {
        this.path = await this.load(name, tries);
      } catch (fault) {
        this.warn(`${name}: ${fault}`);
        if (tries >= LOADS_MAX) name = otherPath(name) ?? name;
        await new Promise((resolve) => setTimeout(resolve, LOAD_AGAIN_MS));
      }
    }
    const {canvas, video} = this.parts;
    video.hidden = name !== 'mse';
    // Until the <video> has its first picture the canvas shows the last one.
    canvas.hidden = name === 'mse' && this.count.shown === 0;
    this.askKey();
  }

  /** @param {PicturePath['name']} name @param {number} tries @returns {Promise<PicturePath>} */
  async load(name, tries) {
    const {canvas, video} = this.parts;
    const shown = this.shown.bind(this);
    const lost = this.lost.bind(this);
    // Some browsers cache a failed module load; another name makes them retry.
    const again = tries ? `?again=${tries}` : '';
    if (name === 'webcodecs') {
      /** @type {typeof import('./webcodecs.js')} */
      const {WebCodecsPath} = await import(`./webcodecs.js${again}`);
      const decoded = () => {
        this.count.decoded += 1;
        this.remedy.pictured();
      };
      return new WebCodecsPath({canvas, shown, lost, decoded, held: () => this.held});
    }
    /** @type {typeof import('./mse.js')} */
    const {MsePath} = await import(`./mse.js${again}`);
    return new MsePath({
      video, shown, lost, leaving: () => this.freeze(),
      blocked: (blocked) => (this.blocked = blocked),
    });
  }

  /** Why there is no picture, as far as this page can tell. @returns {'unsupported' | 'tap' | 'decoder' | ''} */
  get trouble() {
    if (this.unsupported) return 'unsupported';
    if (this.blocked && this.path?.name === 'mse') return 'tap';
    return this.faultsInRow >= FAULTS_TOLD ? 'decoder' : '';
  }

  /** Copies the picture of the <video>, which is about to go black, to the canvas. */
  freeze() {
    const {canvas, video} = this.parts;
    if (!canvas.hidden || video.readyState < HAVE_CURRENT_DATA) return;
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    canvas.getContext('2d', {alpha: false})?.drawImage(video, 0, 0);
    canvas.hidden = false;
  }

  /**
   * A hidden page decodes nothing; on return it starts at a key frame.
   * @param {boolean} visible
   */
  setVisible(visible) {
    if (visible === this.visible) return;
    this.visible = visible;
    this.sequence = -1;
    this.remedy.reset();
    this.path?.reset();
    if (visible) this.askKey();
  }

  /** @param {ArrayBuffer} bytes */
  frame(bytes) {
    this.count.bytes += bytes.byteLength;
    if (!this.visible || !this.path) return;
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
    this.count.fed += 1;
    this.arrived(performance.now());
    if (!this.path.push(frame)) {
      this.count.dropped += 1;
      this.count.refused += 1;
      this.sequence = -2;
      this.askKey();
    } else if (!this.blocked && this.remedy.fed(performance.now(), this.path.gradual)) {
      this.path.rebuild();
      this.lost(`${this.path.name}: units go in, no picture comes out`);
    }
  }

  /** @param {number} nowMs */
  arrived(nowMs) {
    this.arrivedMs.push(nowMs);
    if (this.arrivedMs.length > RATE_UNITS) this.arrivedMs.shift();
    if (this.rate.keptUp(nowMs)) this.parts.requestFps?.(this.rate.most);
  }

  /**
   * This device is too slow for its pictures: asks the car for fewer. False if that is no help.
   * @param {boolean} [sure]
   */
  behind(sure) {
    const nowMs = performance.now();
    const {length, 0: firstMs = nowMs} = this.arrivedMs;
    const {most} = this.rate;
    if (!this.parts.requestFps || !this.rate.behind(nowMs, 1000 * length / Math.max(1, nowMs - firstMs), sure)) return false;
    if (this.rate.most !== most) this.parts.requestFps(this.rate.most);
    return true;
  }

  /** @param {number} captureUs @param {number} shownMs */
  shown(captureUs, shownMs) {
    this.remedy.pictured();
    this.faultsInRow = 0;
    this.blocked = false;
    this.count.shown += 1;
    this.lastCaptureUs = captureUs;
    this.lastShownMs = shownMs;
    this.times.push(shownMs);
    if (this.times.length > RECENT) this.times.shift();
    const ageMs = this.parts.ageMs(captureUs, shownMs);
    this.capturedSure = ageMs !== null && ageMs > -CLOCK_OFF_MS;
    this.capturedMs = shownMs - Math.max(0, ageMs ?? 0);
    if (ageMs !== null) this.latencyMs.push(Math.round(ageMs * 100) / 100);
    if (this.latencyMs.length > RECENT) this.latencyMs.shift();
    if (this.path?.name === 'mse') {
      this.count.decoded += 1;
      this.parts.canvas.hidden = true;
    }
    this.parts.changed();
  }

  /**
   * A failed path has restarted and needs a key frame.
   * @param {string} fault @param {boolean} [behind] it was too slow
   */
  lost(fault, behind = false) {
    this.warn(fault);
    this.sequence = -2;
    // Browsers take decoders away from pages that sleep: that is no fault of theirs.
    if (!this.visible) return;
    this.count.faults += 1;
    if (behind && this.behind()) {
      this.askKey();
      return;
    }
    this.faultsInRow += 1;
    const next = this.path && otherPath(this.path.name);
    if (this.remedy.failed(performance.now()) === 'change' && next) void this.use(next);
    this.askKey();
  }

  /** @param {string} fault */
  warn(fault) {
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
   * Age of the picture on the glass, capture to now; null before the first picture.
   * Never less than its time on the glass: a restarted car counts from zero, and its last
   * picture would seem to come from the future.
   * @param {number} nowMs
   */
  ageMs(nowMs) {
    if (this.count.shown === 0) return null;
    const ageMs = this.parts.ageMs(this.lastCaptureUs, nowMs) ?? 0;
    return Math.max(ageMs, nowMs - this.capturedMs);
  }

  /** Is `ageMs` the true age? Else it is a lower bound. @param {number} nowMs */
  ageSure(nowMs) {
    const ageMs = this.parts.ageMs(this.lastCaptureUs, nowMs);
    return this.capturedSure ||
      (ageMs !== null && ageMs > nowMs - this.lastShownMs - CLOCK_OFF_MS);
  }

  /** The picture's width and height. @returns {[number, number]} */
  get size() {
    const {canvas, video} = this.parts;
    return this.path?.name === 'mse' && canvas.hidden
      ? [video.videoWidth, video.videoHeight] : [canvas.width, canvas.height];
  }

  /** Pictures shown in the last second. @param {number} nowMs */
  fps(nowMs) {
    return this.times.filter((shownMs) => shownMs > nowMs - 1000).length;
  }

  /** Capture-to-glass latency, median of the last second or so; null while unknown. */
  get pictureMs() {
    return median(this.latencyMs.slice(-30));
  }

  /** @param {ArrayBuffer} bytes */
  readOrNull(bytes) {
    try {
      return parseVideo(bytes);
    } catch (fault) {
      if (!(fault instanceof WireError)) throw fault;
      this.warn(fault.message);
      return null;
    }
  }
}

/**
 * The other path, if this browser has it.
 * @param {PicturePath['name']} name @returns {PicturePath['name'] | null}
 */
function otherPath(name) {
  const next = name === 'mse' ? 'webcodecs' : 'mse';
  return supports[next]() ? next : null;
}
