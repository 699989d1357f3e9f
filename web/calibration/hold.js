/** A button that moves the car while a finger is on it, and not a moment longer. */

import {capture} from '../lib/dom.js';

/** @import {Wish} from '../lib/types.js' */

/** The car sends its wish 10 times a second; after this silence the page sends neutral. */
const SILENT_MS = 500;
const BEAT_MS = 40;
const NEUTRAL = {throttle: 0, steer: 0};

export class Hold {
  /**
   * @param {{set: (wish: Wish) => void, changed?: (held: boolean) => void,
   *   now?: () => number}} parts
   */
  constructor({set, changed = () => {}, now = () => performance.now()}) {
    this.set = set;
    this.changed = changed;
    this.now = now;
    /** Set by the page: a push counts only while the car can move. */
    this.canMove = true;
    this.held = false;
    /** @type {Wish} */
    this.next = NEUTRAL;
    this.heardMs = -Infinity;
    this.timer = 0;
  }

  /** @param {HTMLElement} button */
  listen(button) {
    button.addEventListener('pointerdown', (event) => {
      if (event.button > 0) return;
      event.preventDefault();
      if (capture(button, event.pointerId)) this.down();
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture', 'blur']) {
      button.addEventListener(end, () => this.up());
    }
    button.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      if (!event.repeat) this.down();
    });
    button.addEventListener('keyup', (event) => {
      if (event.key === 'Enter') this.up();
    });
  }

  /** Takes the step's current wish. @param {Wish} wish */
  hear(wish) {
    this.next = wish;
    this.heardMs = this.now();
    this.beat();
  }

  down() {
    if (this.held || !this.canMove) return;
    this.held = true;
    this.timer = Number(setInterval(() => this.beat(), BEAT_MS));
    this.changed(true);
    this.beat();
  }

  up() {
    clearInterval(this.timer);
    if (!this.held) return;
    this.held = false;
    this.set(NEUTRAL);
    this.changed(false);
  }

  beat() {
    if (!this.held) return;
    const silent = this.now() - this.heardMs > SILENT_MS;
    this.set(silent ? NEUTRAL : this.next);
  }
}
