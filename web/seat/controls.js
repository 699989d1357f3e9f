/**
 * From wishes to messages: while this page holds the wheel a wish goes out at once on
 * change and every 40 ms; letting go goes out whatever else is the case.
 */

import {NEUTRAL, Sender, Wishes} from './wish.js';

const BEAT_MS = 20;

export class Controls {
  /**
   * @param {{send: (message: import('../lib/types.js').Upward) => boolean,
   *   driving: () => boolean, changed: (wish: import('../lib/types.js').Wish) => void}} parts
   */
  constructor({send, driving, changed}) {
    this.send = send;
    this.driving = driving;
    this.changed = changed;
    this.wishes = new Wishes();
    this.sender = new Sender();
    /** Inputs forget what is held: a key still down moves nothing. @type {(() => void)[]} */
    this.releases = [];
    /** Runs before each beat: ramps of keys. @type {(() => void)[]} */
    this.beats = [];
    this.timer = 0;
    this.soon = 0;
  }

  get wish() {
    return this.wishes.merged;
  }

  /** An input's new wish, sent from its own event handler. @param {string} source @param {import('../lib/types.js').Wish} wish */
  set(source, wish) {
    this.wishes.set(source, wish);
    this.flush();
  }

  /** Sends what is due. */
  flush() {
    const wish = this.wish;
    this.changed(wish);
    if (!this.driving()) return;
    const message = this.sender.offer(wish, performance.now());
    if (message) this.send(message);
    else if (wish.throttle !== this.sender.sent.throttle || wish.steer !== this.sender.sent.steer) {
      this.later();
    }
  }

  /** What changed within the same 8 ms goes out at their end. */
  later() {
    if (this.soon) return;
    this.soon = Number(setTimeout(() => {
      this.soon = 0;
      this.flush();
    }, this.sender.leastMs));
  }

  /** Lets go of everything, at once. */
  letGo() {
    for (const release of this.releases) release();
    this.wishes.clear();
    this.changed(NEUTRAL);
    this.rest();
  }

  /** Says neutral once, as every turn at the wheel begins; what is held counts on. */
  rest() {
    if (this.driving()) this.send(this.sender.take(NEUTRAL, performance.now()));
  }

  /** A new socket: numbers count anew, and nothing of the old wish is repeated. */
  restart() {
    this.sender.reset();
  }

  /** Follows Welcome.drive_every_ms. @param {number} everyMs */
  pace(everyMs) {
    this.sender.everyMs = everyMs;
  }

  awake() {
    if (this.timer) return;
    this.timer = Number(setInterval(() => {
      for (const beat of this.beats) beat();
      this.flush();
    }, BEAT_MS));
  }

  /** No timer runs while the page is hidden. */
  asleep() {
    clearInterval(this.timer);
    this.timer = 0;
  }
}
