/** The first connected gamepad: unless set otherwise triggers drive, the left stick steers,
 * B stops. */

import {FEEL, clamp, pushed, stick} from '../../lib/curves.js';

/** @import {Command, Wish} from '../../lib/types.js' */

const LOOK_MS = 500;
const POLL_MS = 12;
const DOWN = 0.5;
const COMMANDS = /** @type {const} */ (['lights', 'snapshot', 'mark']);

/**
 * The wish of a gamepad; positive steer is left. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad @returns {Wish}
 */
export function padWish(pad) {
  const {forward, back, left, right} = FEEL.pad;
  const way = clamp(pushed(pad, forward) - pushed(pad, back));
  const aside = clamp(pushed(pad, left) - pushed(pad, right));
  return {throttle: stick(way, 0.04), steer: stick(aside, 0.12)};
}

/**
 * Whether stop, and which commands, went down since `before`. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad @param {ReadonlySet<string>} before
 */
export function pushes(pad, before) {
  const {stop} = FEEL.pad;
  const down = new Set([stop, ...COMMANDS.map((name) => FEEL.pad[name])].filter((of) =>
    pushed(pad, of) > DOWN ||
    (of.startsWith('b') && pad.buttons[Number(of.slice(1))]?.pressed)));
  const came = (/** @type {string} */ of) => down.has(of) && !before.has(of);
  return {down, stop: came(stop), commands: COMMANDS.filter((name) => came(FEEL.pad[name]))};
}

export class Gamepads {
  /**
   * @param {{set: (wish: Wish) => void, stop: () => void,
   *   command: (name: Command) => void, came: (name: string) => void, gone: () => void,
   *   used: () => void, focused?: () => boolean}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.focused = parts.focused ?? (() => document.hasFocus());
    this.id = '';
    /** @type {ReadonlySet<string>} */
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
    const pad = [...navigator.getGamepads()].find((candidate) => candidate && candidate.connected !== false);
    if (pad) this.read(pad);
    else if (this.id) this.lose();
    this.timer = Number(setTimeout(() => this.look(), pad ? POLL_MS : LOOK_MS));
  }

  /** @param {Gamepad} pad */
  read(pad) {
    if (pad.id !== this.id) {
      this.id = pad.id;
      // A gamepad reconnected with its trigger down must rest first.
      this.mustRest = true;
      this.parts.came(pad.id.replace(/\s*\(.*$/, '') || pad.id);
    }
    const {down, stop, commands} = pushes(pad, this.before);
    this.before = down;
    if (stop) this.parts.stop();
    if (!FEEL.learning) commands.forEach(this.parts.command);
    this.mustRest ||= FEEL.learning;
    const wish = padWish(pad);
    const rests = wish.throttle === 0 && wish.steer === 0;
    // Unlike keys, sticks reach a page without focus (another game).
    if (rests) this.mustRest &&= FEEL.learning || !this.focused();
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
