/**
 * Sends the driver's wishes: while this page holds the wheel, at once on change and every
 * 40 ms. A wish that lets go never waits.
 */

import {LateLinkFilter, NEUTRAL, Sender, Wishes} from './command.js';

/** @import {Upward, Wish} from '../../lib/types.js' */

const BEAT_MS = 20;

export class Controls {
  /**
   * @param {{send: (message: Upward) => boolean, nonce: () => number,
   *   late: () => boolean, driving: () => boolean, changed: (wish: Wish) => void}} parts
   */
  constructor({send, nonce, late, driving, changed}) {
    this.send = send;
    this.nonce = nonce;
    this.late = late;
    this.driving = driving;
    this.changed = changed;
    this.wishes = new Wishes();
    this.bar = new LateLinkFilter();
    this.sender = new Sender();
    /** Called to let go: inputs clear their held keys. @type {(() => void)[]} */
    this.releases = [];
    /** Called before each beat, for the ramps of keys. @type {(() => void)[]} */
    this.beats = [];
    this.timer = 0;
    this.soon = 0;
  }

  get wish() {
    return this.wishes.merged;
  }

  /**
   * Takes an input's new wish, and sends it from the input's own event handler.
   * @param {string} source @param {Wish} wish
   */
  set(source, wish) {
    this.wishes.set(source, wish);
    this.flush();
  }

  /** Sends if due. */
  flush() {
    const held = this.wish;
    this.changed(held);
    if (!this.driving()) return;
    const wish = this.bar.pass(held, this.late());
    const message = this.sender.offer(wish, performance.now());
    if (message) this.transmit(message);
    else if (wish.throttle !== this.sender.sent.throttle || wish.steer !== this.sender.sent.steer) {
      this.sendSoon();
    }
  }

  /** Batches the changes of 8 ms into one send. */
  sendSoon() {
    if (this.soon) return;
    this.soon = Number(setTimeout(() => {
      this.soon = 0;
      this.flush();
    }, this.sender.leastMs));
  }

  /** Lets go of everything and sends neutral, at once. */
  letGo() {
    for (const release of this.releases) release();
    this.wishes.clear();
    this.changed(NEUTRAL);
    this.sendNeutral();
  }

  /** Sends neutral once, at the start of each turn; held keys stay held. */
  sendNeutral() {
    if (this.driving()) this.transmit(this.sender.take(NEUTRAL, performance.now()));
  }

  /** Sends a wish with the newest nonce of the car. @param {import('./command.js').Drive} wish */
  transmit(wish) {
    this.send({...wish, seen: this.nonce()});
  }

  /** Restarts the numbers on a new socket; drops the old wish. */
  restart() {
    this.sender.reset();
  }

  /** Follows Welcome.drive_every_ms. @param {number} everyMs */
  setPeriod(everyMs) {
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
