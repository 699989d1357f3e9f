/**
 * The path without WebCodecs (plain http): access unit -> fMP4 fragment -> <video>.
 *
 * A media element plays smoothly from a buffer; a driver needs the newest
 * picture. So the path steers the playback rate such that the play position stands at the
 * newest fragment when it arrives. It declares durations longer than they are: the next
 * fragment ends them, and the clock never runs dry between two frames.
 */

import {fragment, initSegment, joined} from './fmp4.js';
import {PRIMER, readKeyFrame} from './h264.js';
import {HAVE_CURRENT_DATA} from './support.js';
import {DURATION_US, Timeline} from './timeline.js';

/** @import {Shown, VideoFrameIn} from '../lib/types.js' */

/** Further behind than this the position jumps; if nearer, the rate catches up. */
const JUMP_S = 0.25;
/** To a key frame a jump costs nothing: no other picture is decoded on the way. */
const JUMP_KEY_S = 0.12;
const KEEP_S = 4;
/** So long before a recovery point the primer of h264.js stands. */
const PRIMER_LEAD_US = 10_000;
const WAITING_MAX = 30;

/** @typedef {{kind: 'opening', early: VideoFrameIn[]} | {kind: 'waiting' | 'closed'}
 *   | {kind: 'playing', buffer: SourceBuffer, codec: string}} MseState */

/** @returns {typeof MediaSource | undefined} */
export function mediaSourceClass() {
  const scope = /** @type {{MediaSource?: typeof MediaSource,
    ManagedMediaSource?: typeof MediaSource}} */ (globalThis);
  return scope.MediaSource ?? scope.ManagedMediaSource;
}

/**
 * The playback rate for a position that is `behindS` behind the newest fragment. Pure.
 * @param {number} behindS
 */
export function playbackRate(behindS) {
  // Standing a frame past the newest start, a picture is late on arrival and shown with
  // the next paint. Chromium, as shown, median: 28.5 ms at 30 ms past and gain 3, 28.0
  // at 35 and 6; from 40 on it drops frames.
  const rate = 1 + 6 * (behindS + 0.035);
  return Math.round(Math.max(0.7, Math.min(4, rate)) * 100) / 100;
}

/** So many paints of a playing video without a callback of the browser: it makes none. */
const SILENT_PAINTS = 30;

export class MsePath {
  /**
   * @param {{video: HTMLVideoElement, shown: Shown,
   *   lost: (fault: string) => void, leaving: () => void,
   *   blocked?: (blocked: boolean) => void}} parts
   *   `leaving`: the element is about to lose its picture; `blocked`: the browser plays only after
   *   a tap, or no longer refuses
   */
  constructor({video, shown, lost, leaving, blocked = () => {}}) {
    this.name = /** @type {const} */ ('mse');
    this.video = video;
    this.shown = shown;
    this.lost = lost;
    this.leaving = leaving;
    this.blocked = blocked;
    this.gesture = () => {
      if (this.state.kind !== 'closed') void this.play();
    };
    /** @type {MseState} */
    this.state = {kind: 'waiting'};
    /** @type {Uint8Array<ArrayBuffer>[]} */
    this.waiting = [];
    this.timeline = new Timeline();
    /** Start of the newest fragment that was fed. */
    this.fedS = 0;
    this.newestIsKey = false;
    this.sequence = 0;
    this.hasInit = '';
    /** Has it started at a recovery point, and has no whole picture yet? */
    this.gradual = false;
    this.primerUs = -1;
    this.open();
    this.watch();
  }

  open() {
    const Source = mediaSourceClass();
    if (!Source) throw new Error('this browser has no MediaSource');
    const source = new Source();
    this.source = source;
    this.state = {kind: 'opening', early: []};
    // Without it a ManagedMediaSource never opens.
    this.video.disableRemotePlayback = true;
    this.url = URL.createObjectURL(source);
    this.video.onerror = () => {
      if (this.source === source) this.fail(this.video.error?.message ?? 'media error');
    };
    this.video.src = this.url;
    source.addEventListener('sourceopen', () => {
      if (this.source !== source || this.state.kind !== 'opening') return;
      // Safari ends a live source without a duration at the end of its buffer.
      source.duration = Infinity;
      const {early} = this.state;
      this.state = {kind: 'waiting'};
      if (!early.every((frame) => this.push(frame))) this.lost('lost while it opened');
    }, {once: true});
  }

  /** Takes one access unit; false if it was dropped. @param {VideoFrameIn} frame */
  push(frame) {
    return this.attempt(() => this.accept(frame));
  }

  /**
   * Treats every exception of the browser as a fault of this source, not the page.
   * InvalidStateError: the element failed; QuotaExceededError: its buffer is full.
   * @param {() => boolean} act
   */
  attempt(act) {
    try {
      return act();
    } catch (fault) {
      // RangeError: parameter sets that are cut; only the unit is damaged.
      if (!(fault instanceof RangeError)) this.fail(String(fault));
      return false;
    }
  }

  /** @param {VideoFrameIn} frame */
  accept(frame) {
    if (frame.key) this.prepare(frame);
    if (this.state.kind === 'opening') return this.hold(this.state.early, frame);
    if (this.state.kind !== 'playing') return false;
    if (this.waiting.length > WAITING_MAX) {
      this.fail(`${this.waiting.length} fragments wait`);
      return false;
    }
    const startUs = this.timeline.place(frame.captureUs);
    this.newestIsKey = frame.key;
    this.sequence += 1;
    this.waiting.push(fragment(frame, this.sequence, startUs, DURATION_US));
    this.feed();
    return true;
  }

  /**
   * Keeps a frame for a source that is still opening.
   * @param {VideoFrameIn[]} early @param {VideoFrameIn} frame
   */
  hold(early, frame) {
    if (frame.key) early.length = 0;
    else if (early.length === 0 || early.length > WAITING_MAX) return false;
    early.push(frame);
    return true;
  }

  /**
   * Makes a buffer and an init segment for this key frame, where they changed.
   * @param {VideoFrameIn} frame
   */
  prepare(frame) {
    const key = readKeyFrame(frame.unit);
    if (!key || !this.source) return;
    // Another codec needs another buffer, and that a new source.
    if (this.state.kind === 'playing' && this.state.codec !== key.codec) this.rebuild();
    if (this.state.kind === 'waiting') {
      const buffer = this.source.addSourceBuffer(`video/mp4; codecs="${key.codec}"`);
      buffer.onupdateend = () => this.attempt(() => {
        if (this.state.kind === 'playing' && this.state.buffer === buffer) this.updated(buffer);
        return true;
      });
      buffer.onerror = () => {
        if (this.state.kind === 'playing' && this.state.buffer === buffer) {
          this.fail('the browser refused a fragment');
        }
      };
      this.state = {kind: 'playing', buffer, codec: key.codec};
    }
    const init = initSegment(key);
    const same = this.hasInit === init.join();
    if (this.state.kind !== 'playing' || same) return;
    this.hasInit = init.join();
    this.waiting.push(init);
    this.gradual = key.gradual;
    if (key.gradual) this.prime(frame.captureUs - PRIMER_LEAD_US);
  }

  /** Puts a picture of its own before a recovery point. @param {number} captureUs */
  prime(captureUs) {
    this.primerUs = captureUs;
    this.sequence += 1;
    const startUs = this.timeline.place(captureUs);
    const primer = {unit: PRIMER, key: true};
    this.waiting.push(fragment(primer, this.sequence, startUs, DURATION_US));
  }

  /** Appends everything that waits, if no append is running. */
  feed() {
    if (this.state.kind !== 'playing' || this.state.buffer.updating) return;
    if (this.waiting.length === 0) return;
    const bytes = joined(...this.waiting);
    this.waiting = [];
    this.fedS = this.timeline.newestS;
    this.state.buffer.appendBuffer(bytes);
  }

  /** After an append or a removal: the next one. @param {SourceBuffer} buffer */
  updated(buffer) {
    this.chase();
    this.feed();
    if (buffer.updating || buffer.buffered.length === 0) return;
    const old = Math.min(this.video.currentTime, this.fedS) - KEEP_S;
    if (buffer.buffered.start(0) < old - KEEP_S) buffer.remove(0, old);
  }

  /** Steers the play position to the newest fragment. */
  chase() {
    const {video} = this;
    // Browsers pause a muted hidden video, and some do not resume it.
    if (video.paused) void this.play();
    if (video.seeking) return;
    const behindS = this.fedS - video.currentTime;
    const far = Math.abs(behindS) > JUMP_S || (this.newestIsKey && behindS > JUMP_KEY_S);
    if (far) video.currentTime = this.fedS;
    video.playbackRate = far ? 1 : playbackRate(behindS);
  }

  /** Plays; in low-power mode some phones refuse that outside the handler of a tap or key. */
  async play() {
    try {
      await this.video.play();
      this.blocked(false);
    } catch (fault) {
      if (!(fault instanceof DOMException)) throw fault;
      if (fault.name === 'NotAllowedError') {
        this.blocked(true);
        for (const kind of ['click', 'keydown']) addEventListener(kind, this.gesture, {capture: true, once: true});
      } else console.debug(`video: ${fault}`);  // AbortError: the source was replaced
    }
  }

  /** Reports each picture when it is on the glass. */
  watch() {
    const {video} = this;
    let lastUs = -1;
    /** @param {number} mediaS @param {number} glassMs */
    const report = (mediaS, glassMs) => {
      const captureUs = this.timeline.captureUs(mediaS);
      const fresh = captureUs !== lastUs && captureUs !== this.primerUs;
      if (this.state.kind === 'playing' && captureUs !== null && fresh) {
        lastUs = captureUs;
        this.gradual = false;
        this.shown(captureUs, glassMs);
      }
    };
    // WebKitGTK has the callback, and makes no calls for a live source.
    let silentPaints = 'requestVideoFrameCallback' in video ? 0 : SILENT_PAINTS;
    if (silentPaints === 0) {
      /** @type {VideoFrameRequestCallback} */
      const each = (_, about) => {
        silentPaints = -Infinity;
        if (this.state.kind === 'closed') return;
        report(about.mediaTime, Math.max(about.expectedDisplayTime, performance.now()));
        video.requestVideoFrameCallback(each);
      };
      video.requestVideoFrameCallback(each);
    }
    // The newest fragment at or before the play position is on the glass.
    const each = () => {
      if (this.state.kind === 'closed' || silentPaints < 0) return;
      // A position that was only asked for shows nothing yet.
      const {seeking, readyState, currentTime} = this.video;
      if (!seeking && readyState >= HAVE_CURRENT_DATA) {
        silentPaints += currentTime > 0 ? 1 : 0;
        if (silentPaints > SILENT_PAINTS) report(Math.min(this.timeline.newestS, currentTime), performance.now());
      }
      requestAnimationFrame(each);
    };
    requestAnimationFrame(each);
  }

  /** @param {string} fault */
  fail(fault) {
    this.rebuild();
    this.lost(fault);
  }

  /** Clears the queue. A source that plays goes on: the next key frame follows where it ends. */
  reset() {
    this.waiting = [];
    this.hasInit = '';
    if (this.state.kind === 'opening') this.state.early = [];
  }

  /** Opens a new source: a media element that failed once plays no more. */
  rebuild() {
    if (this.state.kind === 'closed') return;
    this.release();
    this.open();
  }

  release() {
    this.leaving();
    this.reset();
    this.sequence = 0;
    this.timeline = new Timeline();
    this.fedS = 0;
    this.source = undefined;
    if (this.url) URL.revokeObjectURL(this.url);
    this.video.removeAttribute('src');
  }

  close() {
    this.release();
    this.state = {kind: 'closed'};
  }
}
