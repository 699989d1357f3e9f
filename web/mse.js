/**
 * The way without WebCodecs (plain http): access unit -> fMP4 fragment -> <video>.
 *
 * A media element wants to play smoothly from a buffer; a driver wants the newest
 * picture. So the playback rate is steered such that the play position stands at the
 * newest fragment when it arrives. Durations are declared longer than they are: the
 * next fragment ends them, and the clock never runs dry between two frames.
 */

import {fragment, initSegment} from './fmp4.js';
import {readKeyFrame} from './h264.js';

const DURATION_US = 100_000;
/** Further behind than this the position jumps; nearer, the rate catches up. */
const JUMP_S = 0.4;
const KEEP_S = 4;
const WAITING_MAX = 30;
/** HTMLMediaElement's, which Node has not. */
const HAVE_CURRENT_DATA = 2;

/** @typedef {{kind: 'opening' | 'waiting' | 'closed'}
 *   | {kind: 'playing', buffer: SourceBuffer, codec: string}} MseState */

/** @returns {typeof MediaSource | undefined} */
function sourceClass() {
  const here = /** @type {{MediaSource?: typeof MediaSource,
    ManagedMediaSource?: typeof MediaSource}} */ (globalThis);
  return here.MediaSource ?? here.ManagedMediaSource;
}

/**
 * The playback rate for a position that is `behindS` behind the newest fragment. Pure.
 * @param {number} behindS
 */
export function playbackRate(behindS) {
  // Standing a frame past the newest start, a picture is late on arrival and shown with
  // the next paint. Chromium: 38 ms instead of 43 at 4 ms; beyond 45 ms it drops frames.
  const rate = 1 + 3 * (behindS + 0.03);
  return Math.round(Math.max(0.7, Math.min(4, rate)) * 100) / 100;
}

export class MsePath {
  static get available() {
    return sourceClass() !== undefined;
  }

  /**
   * @param {{video: HTMLVideoElement, shown: import('./types.js').Shown,
   *   lost: (fault: string) => void}} parts
   */
  constructor({video, shown, lost}) {
    this.name = /** @type {const} */ ('mse');
    this.video = video;
    this.shown = shown;
    this.lost = lost;
    /** @type {MseState} */
    this.state = {kind: 'opening'};
    /** @type {Uint8Array<ArrayBuffer>[]} */
    this.waiting = [];
    this.baseUs = 0;
    this.newestS = 0;
    this.sequence = 0;
    this.hasInit = '';
    this.open();
    this.watch();
  }

  open() {
    const Source = sourceClass();
    if (!Source) throw new Error('this browser has no MediaSource');
    const source = new Source();
    this.source = source;
    this.state = {kind: 'opening'};
    // Without it a ManagedMediaSource never opens.
    this.video.disableRemotePlayback = true;
    this.url = URL.createObjectURL(source);
    this.video.src = this.url;
    source.addEventListener('sourceopen', () => {
      if (this.source === source && this.state.kind === 'opening') {
        this.state = {kind: 'waiting'};
      }
    }, {once: true});
  }

  /** @param {import('./types.js').VideoFrameIn} frame */
  push(frame) {
    if (this.state.kind === 'opening' || this.state.kind === 'closed') return false;
    if (frame.key) this.prepare(frame);
    if (this.state.kind !== 'playing') return false;
    if (this.waiting.length > WAITING_MAX) {
      this.fail(`${this.waiting.length} fragments wait`);
      return false;
    }
    const timeUs = frame.captureUs - this.baseUs;
    this.newestS = timeUs / 1e6;
    this.sequence += 1;
    this.waiting.push(fragment(frame, this.sequence, timeUs, DURATION_US));
    this.feed();
    return true;
  }

  /**
   * A buffer and an init segment for this key frame, where they changed.
   * @param {import('./types.js').VideoFrameIn} frame
   */
  prepare(frame) {
    const key = readKeyFrame(frame.unit);
    if (!key || !this.source) return;
    const type = `video/mp4; codecs="${key.codec}"`;
    if (this.state.kind === 'waiting') {
      const buffer = this.source.addSourceBuffer(type);
      buffer.onupdateend = () => this.feed();
      buffer.onerror = () => this.fail('the browser refused a fragment');
      this.baseUs = frame.captureUs;
      this.state = {kind: 'playing', buffer, codec: key.codec};
    }
    const init = initSegment(key);
    const same = this.hasInit === init.join();
    if (this.state.kind !== 'playing' || same) return;
    if (this.state.codec !== key.codec) {
      this.fail(`codec changed to ${key.codec}`);
      return;
    }
    this.hasInit = init.join();
    this.waiting.push(init);
  }

  /** One append at a time; everything that waits goes in together. */
  feed() {
    if (this.state.kind !== 'playing' || this.state.buffer.updating) return;
    const {buffer} = this.state;
    if (this.waiting.length > 0) {
      const bytes = concat(this.waiting);
      this.waiting = [];
      this.append(buffer, bytes);
      return;
    }
    this.chase();
    const old = this.video.currentTime - KEEP_S;
    if (buffer.buffered.length > 0 && buffer.buffered.start(0) < old - KEEP_S) {
      buffer.remove(0, old);
    }
  }

  /** @param {SourceBuffer} buffer @param {Uint8Array<ArrayBuffer>} bytes */
  append(buffer, bytes) {
    try {
      buffer.appendBuffer(bytes);
    } catch (fault) {
      // InvalidStateError: the element failed; QuotaExceededError: its buffer is full.
      if (!(fault instanceof DOMException)) throw fault;
      this.fail(fault.message);
    }
  }

  /** Steers the play position to the newest fragment. */
  chase() {
    const {video} = this;
    const behindS = this.newestS - video.currentTime;
    if (behindS > JUMP_S || behindS < -JUMP_S) {
      video.currentTime = this.newestS;
      video.playbackRate = 1;
    } else {
      video.playbackRate = playbackRate(behindS);
    }
    if (video.paused) {
      // NotAllowedError where a browser wants a touch first: the next frame tries again.
      video.play().catch((fault) => console.debug(String(fault)));
    }
  }

  /** Reports each picture when it is on the glass. */
  watch() {
    const {video} = this;
    let lastUs = -1;
    /** @param {number} mediaS @param {number} glassMs */
    const note = (mediaS, glassMs) => {
      const captureUs = Math.round(this.baseUs + mediaS * 1e6);
      if (this.state.kind === 'playing' && captureUs !== lastUs) {
        lastUs = captureUs;
        this.shown(captureUs, glassMs);
      }
    };
    if ('requestVideoFrameCallback' in video) {
      /** @type {VideoFrameRequestCallback} */
      const each = (_, about) => {
        if (this.state.kind === 'closed') return;
        note(about.mediaTime, Math.max(about.expectedDisplayTime, performance.now()));
        video.requestVideoFrameCallback(each);
      };
      video.requestVideoFrameCallback(each);
    } else {
      // The newest fragment at or before the play position is on the glass.
      const each = () => {
        if (this.state.kind === 'closed') return;
        // A position that was only asked for shows nothing yet.
        const {seeking, readyState, currentTime} = this.video;
        if (!seeking && readyState >= HAVE_CURRENT_DATA) {
          note(Math.min(this.newestS, currentTime), performance.now());
        }
        requestAnimationFrame(each);
      };
      requestAnimationFrame(each);
    }
  }

  /** @param {string} fault */
  fail(fault) {
    this.reset();
    this.lost(fault);
  }

  /** A new source: a media element that failed once plays no more. */
  reset() {
    if (this.state.kind === 'closed') return;
    if (this.state.kind === 'opening') return;
    this.release();
    this.open();
  }

  release() {
    this.waiting = [];
    this.hasInit = '';
    this.sequence = 0;
    this.newestS = 0;
    if (this.url) URL.revokeObjectURL(this.url);
    this.video.removeAttribute('src');
  }

  close() {
    this.release();
    this.source = undefined;
    this.state = {kind: 'closed'};
  }
}

/** @param {Uint8Array<ArrayBuffer>[]} parts */
function concat(parts) {
  if (parts.length === 1) return parts[0];
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
