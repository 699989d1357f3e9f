/** The first connected gamepad: triggers drive, the left stick steers, B stops. */

import {clamp, stick} from './curves.js';

/** @import {Wish} from '../../lib/types.js' */

const LOOK_MS = 500;
const POLL_MS = 12;
const [A, B, LEFT_TRIGGER, RIGHT_TRIGGER] = [0, 1, 6, 7];

/**
 * The wish of a gamepad in the standard layout; positive steer is left. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad @returns {Wish}
 */
export function padWish(pad) {
  /** @param {number} index */
  const pushed = (index) => pad.buttons[index]?.value ?? 0;
  const way = clamp(pushed(RIGHT_TRIGGER) - pushed(LEFT_TRIGGER));
  return {throttle: stick(way, 0.04), steer: 0 - stick(pad.axes[0] ?? 0, 0.12)};
}

/**
 * Which of A and B went down since `before`. Pure.
 * @param {Pick<Gamepad, 'buttons'>} pad @param {ReadonlySet<number>} before
 */
export function pushes(pad, before) {
  const down = new Set([A, B].filter((index) => pad.buttons[index]?.pressed));
  return {down, lights: down.has(A) && !before.has(A), stop: down.has(B) && !before.has(B)};
}

export class Gamepads {
  /**
   * @param {{set: (wish: Wish) => void, stop: () => void,
   *   lights: () => void, came: (name: string) => void, gone: () => void,
   *   used: () => void, focused?: () => boolean}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.focused = parts.focused ?? (() => document.hasFocus());
    this.id = '';
    /** @type {ReadonlySet<number>} */
    this.before = new Set();
    this.timer = 0;
    /** After a stop the sticks must rest once, with the page in focus, before they count. */
    this.mustRest = false;
  }

  /** @param {Window} window */
  listen(window) {
    // A hidden page does not begin to look because a gamepad came.
    const look = () => (this.timer ? this.look() : undefined);
    window.addEventListener('gamepadconnected', look);
    window.addEventListener('gamepaddisconnected', look);
  }

  awake() {
    if (!this.timer) this.look();
  }

  asleep() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** Reads the gamepad, and again soon while one is there. */
  look() {
    clearTimeout(this.timer);
    const pad = [...navigator.getGamepads()].find((one) => one && one.connected !== false);
    if (pad) this.read(pad);
    else if (this.id) this.lose();
    this.timer = Number(setTimeout(() => this.look(), pad ? POLL_MS : LOOK_MS));
  }

  /** @param {Gamepad} pad */
  read(pad) {
    if (pad.id !== this.id) {
      this.id = pad.id;
      // One that comes back with its trigger down drives nobody on.
      this.mustRest = true;
      this.parts.came(pad.id.replace(/\s*\(.*$/, '') || pad.id);
    }
    const {down, lights, stop} = pushes(pad, this.before);
    this.before = down;
    if (stop) this.parts.stop();
    if (lights) this.parts.lights();
    const wish = padWish(pad);
    const rests = wish.throttle === 0 && wish.steer === 0;
    // Unlike keys, sticks reach a page without focus: somebody plays elsewhere.
    if (rests) this.mustRest &&= !this.focused();
    else if (!this.mustRest) this.parts.used();
    this.parts.set(this.mustRest ? {throttle: 0, steer: 0} : wish);
  }

  lose() {
    this.id = '';
    this.before = new Set();
    this.parts.set({throttle: 0, steer: 0});
    this.parts.gone();
  }

  release() {
    this.mustRest = this.id !== '';
  }
}
