/** Arrows and WASD drive; Space stops and Esc escapes, before any focused control gets them.
 * A text field keeps every key but Esc. If it vanishes, typing on does not drive. */

import {steerRamp, throttleRamp} from '../../lib/curves.js';
import {codeOf, isTextField} from '../../lib/dom.js';
import {LOOK_KEYS} from '../servos/aim.js';

/** @import {Command, Wish} from '../../lib/types.js' */

const MOVES = /** @type {Record<string, 'up' | 'down' | 'left' | 'right'>} */ ({
  ArrowUp: 'up', KeyW: 'up', ArrowDown: 'down', KeyS: 'down',
  ArrowLeft: 'left', KeyA: 'left', ArrowRight: 'right', KeyD: 'right',
});
const COMMANDS = /** @type {Record<string, Command>} */ ({
  KeyL: 'lights', KeyO: 'lights', KeyF: 'full', KeyP: 'snapshot', KeyM: 'mark', KeyC: 'camera',
});

/** Somebody types on if the next key comes this soon after a field vanished. */
const TYPING_MS = 1000;
/** Keys by which a person leaves a field. */
const LEAVING = ['Enter', 'NumpadEnter', 'Escape', 'Tab'];

/** Do keys change what this focused control holds? @param {EventTarget | null} target */
const isField = (target) => isTextField(target) || target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && target.type !== 'checkbox');

/** Does this focused control need arrows and letters for itself? @param {EventTarget | null} target */
export const takesKeys = (target) => isField(target) ||
  (target instanceof HTMLElement && target.getAttribute('role') === 'tab');

/** A remote's stop button is one, too. @param {KeyboardEvent} event */
const isStop = (event) => ['Space', 'MediaStop'].includes(codeOf(event)) || event.key === ' ';

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
    /** Keys of the camera, as `held`. @type {Map<string, number>} */
    this.looks = new Map();
    /** Set for a car whose camera turns; L is one of its keys then. @type {{turn: () => void, rest: () => void} | null} */
    this.camera = null;
    /** A field has the keys: nobody has left it since. */
    this.inField = false;
    /** Until when typing goes on after a field vanished; 0 if none did. */
    this.typingMs = 0;
    /** Keys that went down while typing went on. @type {Set<string>} */
    this.typed = new Set();
  }

  /** @param {Window} window */
  listen(window) {
    window.addEventListener('focusin', ({target}) => (this.inField ||= isField(target)));
    window.addEventListener('pointerdown', ({target}) => (this.inField &&= isField(target)), {capture: true});
    window.addEventListener('keydown', (event) => this.down(event), {capture: true});
    window.addEventListener('keyup', (event) => this.up(event), {capture: true});
  }

  /** Is a driving key down? If so, push no button. */
  get busy() {
    return this.held.size > 0;
  }

  /** @param {KeyboardEvent} event */
  down(event) {
    const code = codeOf(event);
    const escapes = event.key === 'Escape' || code === 'Escape';
    const typing = isTextField(event.target);
    const vanished = this.typesOn(event, code);
    if (escapes ? !event.isComposing : !typing && isStop(event)) {
      swallow(event);
      if (!event.repeat) this.parts[escapes ? 'escape' : 'stop']();
      return;
    }
    // macOS tells no page of a key that is let go while Cmd is down.
    if (event.key === 'Meta') this.letGo();
    if (event.ctrlKey || event.altKey || event.metaKey || vanished ||
      takesKeys(event.target)) return;
    if (MOVES[code]) {
      swallow(event);
      // A repeat after a stop or a lost focus is an old push, not a new one.
      if (event.repeat || this.held.has(code)) return;
      this.held.set(code, this.now());
      this.parts.used();
      this.sendWish();
    } else if (this.camera && LOOK_KEYS[code]) {
      swallow(event);
      if (event.repeat) return;
      this.looks.set(code, this.now());
      this.camera.turn();
    } else if (!event.repeat) {
      this.command(event.key, code);
    }
  }

  /**
   * True while a person types into a field that vanished. No key drives before all are up and a
   * second has passed without one.
   * @param {KeyboardEvent} event @param {string} code
   */
  typesOn({target}, code) {
    const nowMs = this.now();
    if (isField(target)) {
      this.inField = true;
      this.typingMs = 0;
    } else if (this.inField) {
      this.inField = false;
      this.typingMs = nowMs + TYPING_MS;
    }
    if (LEAVING.includes(code)) {
      this.inField = false;
      this.typingMs = 0;
    }
    if (this.typed.size === 0 && nowMs >= this.typingMs) return false;
    this.typed.add(code);
    this.typingMs = nowMs + TYPING_MS;
    return true;
  }

  /** @param {string} key @param {string} code */
  command(key, code) {
    if (key === '?') this.parts.command('keys');
    else if (code === 'KeyR') this.camera?.rest();
    else if (COMMANDS[code]) this.parts.command(COMMANDS[code]);
  }

  /** @param {KeyboardEvent} event */
  up(event) {
    const code = codeOf(event);
    // A button is pushed by the release of Space: that is swallowed as well.
    if (isStop(event) && !isTextField(event.target)) swallow(event);
    if (this.typed.delete(code)) this.typingMs = this.now() + TYPING_MS;
    // A release without a name may be any key's.
    if (!code) this.letGo();
    else if (this.held.delete(code)) this.sendWish();
    else if (this.looks.delete(code)) this.camera?.turn();
  }

  /** Forgets every key, and sends the wish if one drove. */
  letGo() {
    const busy = this.busy;
    this.release();
    if (busy) this.sendWish();
    this.camera?.turn();
  }

  /** Forgets every key. */
  release() {
    this.held.clear();
    this.looks.clear();
    this.typed.clear();
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
