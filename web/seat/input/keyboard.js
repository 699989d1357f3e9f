/** Arrows and WASD drive; Space stops and Esc escapes, before any focused control gets them.
 * A text field keeps every key but Esc. */

import {steerRamp, throttleRamp} from '../../lib/curves.js';
import {isTextField} from '../../lib/dom.js';

/** @import {Command, Wish} from '../../lib/types.js' */

const MOVES = /** @type {Record<string, 'up' | 'down' | 'left' | 'right'>} */ ({
  ArrowUp: 'up', KeyW: 'up', ArrowDown: 'down', KeyS: 'down',
  ArrowLeft: 'left', KeyA: 'left', ArrowRight: 'right', KeyD: 'right',
});
const COMMANDS = /** @type {Record<string, Command>} */ ({
  KeyL: 'lights', KeyF: 'full', KeyP: 'snapshot', KeyM: 'mark', KeyC: 'camera',
});

/**
 * Does this focused control, no text field, need arrows and letters for itself?
 * @param {EventTarget | null} target
 */
export const takesKeys = (target) => target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && target.type !== 'checkbox') ||
  (target instanceof HTMLElement && target.getAttribute('role') === 'tab');

/** @param {KeyboardEvent} event */
const isSpace = (event) => event.code === 'Space' || event.key === ' ';

export class Keyboard {
  /**
   * @param {{set: (wish: Wish) => void, stop: () => void, escape: () => void,
   *   command: (name: Command) => void,
   *   used: () => void, now?: () => number}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.now = parts.now ?? (() => performance.now());
    /** Since when each direction is held, by key. @type {Map<string, number>} */
    this.held = new Map();
  }

  /** @param {Window} window */
  listen(window) {
    window.addEventListener('keydown', (event) => this.down(event), {capture: true});
    window.addEventListener('keyup', (event) => this.up(event), {capture: true});
  }

  /** Is a driving key down? If so, push no button. */
  get busy() {
    return this.held.size > 0;
  }

  /** @param {KeyboardEvent} event */
  down(event) {
    const escapes = event.key === 'Escape' || event.code === 'Escape';
    const typing = isTextField(event.target);
    if (escapes ? !event.isComposing : !typing && isSpace(event)) {
      swallow(event);
      if (!event.repeat) this.parts[escapes ? 'escape' : 'stop']();
      return;
    }
    // macOS tells no page of a key that is let go while Cmd is down.
    if (event.key === 'Meta') this.letGo();
    if (event.ctrlKey || event.altKey || event.metaKey || typing ||
      takesKeys(event.target)) return;
    if (MOVES[event.code]) {
      swallow(event);
      // A repeat after a stop or a lost focus is an old push, not a new one.
      if (event.repeat || this.held.has(event.code)) return;
      this.held.set(event.code, this.now());
      this.parts.used();
      this.sendWish();
    } else if (!event.repeat) {
      this.command(event);
    }
  }

  /** @param {KeyboardEvent} event */
  command(event) {
    if (event.key === '?') this.parts.command('keys');
    else if (COMMANDS[event.code]) this.parts.command(COMMANDS[event.code]);
  }

  /** @param {KeyboardEvent} event */
  up(event) {
    // A button is pushed by the release of Space: that is swallowed as well.
    if (isSpace(event) && !isTextField(event.target)) swallow(event);
    if (this.held.delete(event.code)) this.sendWish();
  }

  /** Forgets every key, and sends the wish if one drove. */
  letGo() {
    const busy = this.busy;
    this.release();
    if (busy) this.sendWish();
  }

  /** Forgets every key. */
  release() {
    this.held.clear();
  }

  /** Sends the wish; call it often, as keys ramp up. */
  sendWish() {
    this.parts.set(this.wish(this.now()));
  }

  /** @param {number} nowMs @returns {Wish} */
  wish(nowMs) {
    /** @param {'up' | 'down' | 'left' | 'right'} way */
    const since = (way) => {
      const times = [...this.held].filter(([code]) => MOVES[code] === way).map(([, ms]) => ms);
      return times.length ? nowMs - Math.min(...times) : null;
    };
    /**
     * @param {number | null} plus @param {number | null} minus
     * @param {(ms: number) => number} curve
     */
    const axis = (plus, minus, curve) => {
      if ((plus === null) === (minus === null)) return 0; // neither, or both
      return plus !== null ? curve(plus) : -curve(minus ?? 0);
    };
    return {
      throttle: axis(since('up'), since('down'), throttleRamp),
      steer: axis(since('left'), since('right'), steerRamp),
    };
  }
}

/** @param {Event} event */
function swallow(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}
