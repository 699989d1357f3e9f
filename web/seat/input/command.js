/** The driver's wish, merged from all inputs, and its send times. Pure. */

/** @import {Upward, Wish} from '../../lib/types.js' */

/**
 * A drive message without `seen`, which the link adds.
 * @typedef {Omit<Extract<Upward, {kind: 'drive'}>, 'seen'>} Drive
 */

/** @type {Readonly<Wish>} */
export const NEUTRAL = Object.freeze({throttle: 0, steer: 0});

/** @param {Wish} wish */
export const isNeutral = (wish) => wish.throttle === 0 && wish.steer === 0;

/** Rounds to more decimals than any thumb has; and never -0. @param {number} value */
const tidy = (value) => Math.round(value * 1000) / 1000 + 0;

/**
 * Merges keys, thumbs, gamepad and tilt: on each axis the input that asks for most wins.
 * Tilt steers only while something else drives, so that letting go is neutral.
 */
export class Wishes {
  constructor() {
    /** @type {Map<string, Wish>} */
    this.sources = new Map();
  }

  /** @param {string} source @param {Wish} wish */
  set(source, wish) {
    this.sources.set(source, wish);
  }

  /** Clears every wish, including held keys. */
  clear() {
    this.sources.clear();
  }

  /** @returns {Wish} */
  get merged() {
    let [throttle, steer] = [0, 0];
    for (const [source, wish] of this.sources) {
      if (source === 'tilt') continue;
      if (Math.abs(wish.throttle) > Math.abs(throttle)) throttle = wish.throttle;
      if (Math.abs(wish.steer) > Math.abs(steer)) steer = wish.steer;
    }
    const tilt = this.sources.get('tilt')?.steer ?? 0;
    if (throttle !== 0 && Math.abs(tilt) > Math.abs(steer)) steer = tilt;
    return {throttle: tidy(throttle), steer: tidy(steer)};
  }
}

/**
 * Decides when to send a wish: at once on change, else every 40 ms. A mouse may report
 * 1000 moves a second and the car takes 250 messages: a change comes 8 ms or more after
 * the last message, but letting go and setting off never wait.
 */
export class Sender {
  /** @param {number} everyMs */
  constructor(everyMs = 40, leastMs = 8) {
    this.everyMs = everyMs;
    this.leastMs = leastMs;
    this.seq = 0;
    this.sentMs = -Infinity;
    /** @type {Wish} */
    this.sent = NEUTRAL;
  }

  /** Restarts the counter for a new socket. */
  reset() {
    this.seq = 0;
    this.sentMs = -Infinity;
    this.sent = NEUTRAL;
  }

  /**
   * The message to send now, or null.
   * @param {Wish} wish @param {number} nowMs
   * @returns {Drive | null}
   */
  offer(wish, nowMs) {
    const changed = wish.throttle !== this.sent.throttle || wish.steer !== this.sent.steer;
    const edge = isNeutral(wish) !== isNeutral(this.sent);
    const waitedMs = nowMs - this.sentMs;
    // A timer may come a little early: 38 of 40 ms is due.
    const due = waitedMs >= this.everyMs - 2 || (changed && waitedMs >= this.leastMs);
    return edge || due ? this.take(wish, nowMs) : null;
  }

  /** The message, due or not. @param {Wish} wish @param {number} nowMs */
  take(wish, nowMs) {
    this.seq += 1;
    this.sentMs = nowMs;
    this.sent = wish;
    return {kind: /** @type {const} */ ('drive'), seq: this.seq, t: nowMs, ...wish};
  }
}

/**
 * Turns motion into neutral while the link is late, and after that until the driver has
 * let go once: a key that is still down must not set the car off when the link recovers.
 */
export class LateLinkFilter {
  constructor() {
    this.barred = false;
  }

  /** @param {Wish} wish @param {boolean} late @returns {Wish} */
  pass(wish, late) {
    if (isNeutral(wish)) this.barred = false;
    else if (late) this.barred = true;
    return this.barred ? NEUTRAL : wish;
  }
}

/** A STOP is dropped if the page becomes visible again after this time. */
const FORGET_MS = 60_000;

/**
 * A STOP that waits until the car answers a later ping on the same socket; until then each
 * new socket begins with it. Unlike motion it may be sent again: one too many costs a push
 * on "Resume".
 */
export class StopRequest {
  constructor() {
    this.waiting = false;
    this.pushedMs = 0;
    /** Pings with a greater number went out after the STOP. */
    this.lastPing = Infinity;
  }

  /** @param {number} nowMs */
  push(nowMs) {
    this.waiting = true;
    this.pushedMs = nowMs;
    this.lastPing = Infinity;
  }

  /** The STOP went out, after this ping. @param {number} ping */
  sent(ping) {
    this.lastPing = ping;
  }

  /** @param {number} ping */
  answered(ping) {
    if (ping > this.lastPing) this.waiting = false;
  }

  /** The page comes into view again. @param {number} nowMs */
  pageSeen(nowMs) {
    if (nowMs - this.pushedMs > FORGET_MS) this.waiting = false;
  }
}
