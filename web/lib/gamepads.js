/** Gamepads of the browser: the driving one, rest positions of axes, pushed parts. Pure, but for
 * connectedPads. */

import {FEEL, clamp, pushed, stick} from './curves.js';

/** @import {Wish} from './types.js' */
/** @typedef {Pick<Gamepad, 'axes' | 'buttons'>} Parts */

const DOWN = 0.5;
const DEAD_BUTTON = 0.04;
/** An axis that moves less than this for so long is still. */
const STILL_BY = 0.03;
const STILL_MS = 300;
/** A worn stick rests no further from its middle. */
const REST_MOST = 0.3;
const COMMANDS = /** @type {const} */ (['lights', 'snapshot', 'mark']);

/** Some browsers have gamepads on https and localhost only; a frame may be denied them. */
export const hasGamepads = () => 'getGamepads' in navigator;

/** @returns {Gamepad[]} */
export function connectedPads() {
  if (!hasGamepads()) return [];
  try {
    return [...navigator.getGamepads()].flatMap((pad) => (pad && pad.connected !== false ? [pad] : []));
  } catch (fault) {
    if (fault instanceof DOMException) return [];  // SecurityError: denied by the page around it
    throw fault;
  }
}

/** The name without the numbers that browsers add. @param {string} id */
export const padName = (id) => id.replace(/\s*\(.*$/, '') || id;

/**
 * The wish of a gamepad; positive steer is left. Pure.
 * @param {Parts} pad @param {{low: number, high: number}[]} [rests] @returns {Wish}
 */
export function padWish(pad, rests) {
  const {forward, back, left, right} = FEEL.pad;
  const beyond = (/** @type {string} */ of) => {
    const dead = of.startsWith('b') ? DEAD_BUTTON : FEEL.dead;
    return Math.max(0, (pushed(pad, of, rests) - dead) / (1 - dead));
  };
  return {
    throttle: stick(clamp(beyond(forward) - beyond(back)), 0),
    steer: stick(clamp(beyond(left) - beyond(right)), 0),
  };
}

/**
 * Whether stop, and which commands, went down since `before`; `down` has all buttons, too. Pure.
 * @param {Parts} pad @param {ReadonlySet<string>} before @param {{low: number, high: number}[]} [rests]
 */
export function pushes(pad, before, rests) {
  const {stop} = FEEL.pad;
  const parts = [stop, ...COMMANDS.map((name) => FEEL.pad[name]), ...pad.buttons.map((_, index) => `b${index}`)];
  const down = new Set(parts.filter((of) => pushed(pad, of, rests) > DOWN ||
    (of.startsWith('b') && pad.buttons[Number(of.slice(1))]?.pressed)));
  const came = (/** @type {string} */ of) => down.has(of) && !before.has(of);
  return {down, stop: came(stop), commands: COMMANDS.filter((name) => came(FEEL.pad[name]))};
}

/** One gamepad: its pushes, and where its axes rest. Pure. */
export class PadReading {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    /**
     * An axis rests from low to high, its middle included. `at` and `sinceMs`: where it is, and
     * for how long; `base`: where it was still before.
     * @type {{low: number, high: number, at: number, sinceMs: number, base: number, measured: boolean}[]}
     */
    this.rests = [];
    /** @type {ReadonlySet<string>} */
    this.before = new Set();
    /** Was a button pushed, or is an axis elsewhere than it last was still? */
    this.moves = false;
    /** Each must rest once, with the page in focus, before it counts. */
    this.mustRest = {throttle: true, steer: true};
    /** @type {Wish} */
    this.wish = {throttle: 0, steer: 0};
  }

  /** @param {Parts} pad @param {number} nowMs */
  read(pad, nowMs) {
    pad.axes.forEach((value, index) => this.follow(index, value, nowMs));
    const read = pushes(pad, this.before, this.rests);
    const went = [...read.down].some((of) => of.startsWith('b') && !this.before.has(of));
    this.moves = went || this.rests.some(({at, base}) => Math.abs(at - base) > DOWN);
    this.before = read.down;
    this.wish = padWish(pad, this.rests);
    return read;
  }

  /**
   * Measures where an axis rests: near its middle, still, at first and before it counts again.
   * @param {number} index @param {number} value @param {number} nowMs
   */
  follow(index, value, nowMs) {
    const axis = this.rests[index] ??= {low: 0, high: 0, at: value, sinceMs: nowMs, base: value, measured: false};
    if (Math.abs(value - axis.at) > STILL_BY) Object.assign(axis, {at: value, sinceMs: nowMs});
    if (nowMs - axis.sinceMs < STILL_MS) return;
    const waits = this.mustRest.throttle || this.mustRest.steer || !axis.measured;
    Object.assign(axis, {base: axis.at, measured: true});
    if (!waits || Math.abs(value) > REST_MOST) return;
    axis.low = Math.min(axis.low, value);
    axis.high = Math.max(axis.high, value);
  }

  /**
   * The wish as far as it counts. An axis that never rests leaves the other alone.
   * @param {boolean} restful may it begin to count? @returns {Wish}
   */
  counted(restful) {
    const {wish, mustRest} = this;
    for (const way of /** @type {const} */ (['throttle', 'steer'])) {
      if (wish[way] === 0) mustRest[way] &&= !restful;
    }
    return {throttle: mustRest.throttle ? 0 : wish.throttle, steer: mustRest.steer ? 0 : wish.steer};
  }

  release() {
    this.mustRest = {throttle: true, steer: true};
  }
}

/**
 * The gamepad that drives: the one that a person chose; else one with a mapping, and of these the
 * one that moves. One without a mapping, as some keyboards are listed, has to move. Pure.
 * @template {Pick<Gamepad, 'id' | 'mapping'>} T
 * @param {T[]} pads @param {T | undefined} current the one that drives
 * @param {(pad: T) => boolean} moves @param {boolean} busy does `current` ask for something?
 * @returns {T | undefined}
 */
export function choosePad(pads, current, moves, busy) {
  const chosen = pads.find(({id}) => id === FEEL.use);
  if (chosen || (current && busy)) return chosen ?? current;
  const mapped = pads.filter(({mapping}) => mapping === 'standard');
  const able = mapped.length ? mapped : pads;
  const old = current && able.includes(current) ? current : undefined;
  return (old && moves(old) ? old : able.find(moves)) ?? old ?? mapped[0];
}
