/**
 * The shortest path: access unit -> VideoDecoder -> canvas.
 *
 * Nothing waits: the decoder's own callback draws each picture, and the newest wins.
 * Each VideoFrame has one owner, `show`, which closes it.
 *
 * held.js replaces a decoder that holds pictures.
 */

import {saved} from '../lib/storage.js';
import {PRIMER, PRIMER_US, readKeyFrame} from './h264.js';

/** @import {Shown, VideoFrameIn} from '../lib/types.js' */
/** @typedef {{codec: string, width: number, height: number}} Format */

/**
 * A decoder that has had more units than this to decode for so long cannot keep up, or the
 * page slept. A queue that it empties sooner is a burst after a stall of the link.
 */
const QUEUE_MAX = 8;
const BEHIND_MS = 400;
/** Units of 2 s: no burst of the car is longer. */
const QUEUE_LIMIT = 60;

/**
 * The name of a format's decoder in the storage. The level, the last two digits of the codec,
 * changes with the bitrate.
 * @param {Format} format
 */
const nameOf = ({codec, width, height}) => `decoder.${codec.slice(0, -2)}.${width}x${height}`;

export class WebCodecsPath {
  /**
   * @param {{canvas: HTMLCanvasElement, shown: Shown, lost: (fault: string, behind?: boolean) => void,
   *   decoded: () => void, held: () => import('./held.js').HeldRemedy | null}} parts
   *   `lost`: a key frame is needed, since the decoder failed or is behind; `held`: the remedy, once it has loaded
   */
  constructor({canvas, shown, lost, decoded, held}) {
    this.name = /** @type {const} */ ('webcodecs');
    this.canvas = canvas;
    const context = canvas.getContext('2d', {alpha: false});
    if (!context) throw new Error('this browser gives no 2d canvas');
    this.context = context;
    this.shown = shown;
    this.lost = lost;
    this.decoded = decoded;
    this.held = held;
    /** The decoders chosen on this device, by format. @type {Record<string, string>} */
    this.choices = {};
    /** @type {import('../lib/types.js').DecoderState} */
    this.state = {kind: 'waiting'};
    this.newestUs = -1;
    this.painting = false;
    /** When the decoder last had few units to decode. */
    this.keptUpMs = 0;
  }

  /** Takes one access unit; false if it was dropped. @param {VideoFrameIn} frame */
  push(frame) {
    try {
      return this.decode(frame);
    } catch (fault) {
      // RangeError: parameter sets that are cut, a damaged unit. All else is the
      // decoder's: refused by it (TypeError), or taken away by the browser.
      if (!(fault instanceof RangeError)) this.fail(String(fault));
      return false;
    }
  }

  /** @param {VideoFrameIn} frame */
  decode(frame) {
    if (frame.key && this.state.kind !== 'closed') this.prepare(frame.unit);
    if (this.state.kind !== 'decoding') return false;
    const {decoder} = this.state;
    const nowMs = performance.now();
    const waiting = decoder.decodeQueueSize;
    if (waiting <= QUEUE_MAX) this.keptUpMs = nowMs;
    const behind = waiting > QUEUE_LIMIT || nowMs - this.keptUpMs > BEHIND_MS;
    if (behind && !frame.key) {
      this.fail(`${waiting} units wait in the decoder`, true);
      return false;
    }
    if (!this.gradual) this.held()?.fed(this, this.state, frame.captureUs, nowMs);
    decoder.decode(new EncodedVideoChunk({
      type: frame.key && !this.state.gradual ? 'key' : 'delta',
      // Comes back with the picture, as its capture time.
      timestamp: frame.captureUs,
      data: frame.unit,
    }));
    return true;
  }

  /**
   * Makes a decoder for this key frame; the old one goes on where nothing changed.
   * @param {Uint8Array} unit
   */
  prepare(unit) {
    const key = readKeyFrame(unit);
    if (!key) return;
    const old = this.state;
    const software = this.choice(key) === 'software';
    if (old.kind === 'decoding') {
      const same = old.codec === key.codec && old.width === key.width &&
        old.height === key.height && old.software === software;
      if (same) return;
      this.reset();
    }
    /** @type {VideoDecoder} */
    const decoder = new VideoDecoder({
      output: (picture) => this.show(picture),
      error: (fault) => {
        if (this.state.kind === 'decoding' && this.state.decoder === decoder) {
          this.fail(fault.message);
        }
      },
    });
    const {codec, width, height, gradual} = key;
    this.state = {
      kind: 'decoding', decoder, codec, width, height, software, gradual, proven: false,
    };
    const hardwareAcceleration = software ? 'prefer-software' : 'no-preference';
    // No description: Annex B. No codedWidth: the SPS says it, cropping included.
    decoder.configure({codec, optimizeForLatency: true, hardwareAcceleration});
    if (!gradual) return;
    decoder.decode(new EncodedVideoChunk({type: 'key', timestamp: PRIMER_US, data: PRIMER}));
  }

  /** The decoder chosen for a format; '' is the browser's choice. @param {Format} format */
  choice(format) {
    const name = nameOf(format);
    return this.choices[name] ??= saved.get(name);
  }

  /** @param {Format} format @param {'software' | 'browser'} decoder */
  choose(format, decoder) {
    const name = nameOf(format);
    this.choices[name] = decoder;
    saved.set(name, decoder);
  }

  /** Does it use a software decoder because the browser's choice holds pictures? */
  get software() {
    return this.state.kind === 'decoding' && this.state.software;
  }

  /** Has it started at a recovery point, and has no whole picture yet? */
  get gradual() {
    return this.state.kind === 'decoding' && this.state.gradual && !this.state.proven;
  }

  /** Draws and closes a picture. @param {VideoFrame} picture */
  show(picture) {
    const captureUs = picture.timestamp;
    if (this.state.kind === 'decoding' && captureUs !== PRIMER_US) {
      this.state.proven = true;
      this.held()?.pictured(captureUs);
      this.decoded();
      const {displayWidth: width, displayHeight: height} = picture;
      if (this.canvas.width !== width || this.canvas.height !== height) {
        this.canvas.width = width;
        this.canvas.height = height;
      }
      this.context.drawImage(picture, 0, 0);
      this.newestUs = captureUs;
      this.reportShown();
    }
    picture.close();
  }

  /** Reports the picture with the next paint, which brings it to the glass. */
  reportShown() {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(() => {
      this.painting = false;
      this.shown(this.newestUs, performance.now());
    });
  }

  /** @param {string} fault @param {boolean} [behind] */
  fail(fault, behind) {
    const {state} = this;
    if (state.kind === 'decoding' && state.software && !state.proven) {
      this.choose(state, 'browser');
    }
    this.reset();
    this.lost(fault, behind);
  }

  reset() {
    if (this.state.kind === 'decoding' && this.state.decoder.state !== 'closed') {
      this.state.decoder.close();
    }
    if (this.state.kind !== 'closed') this.state = {kind: 'waiting'};
  }

  rebuild() {
    this.reset();
  }

  close() {
    this.reset();
    this.state = {kind: 'closed'};
  }
}
