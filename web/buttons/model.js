/**
 * The page's lights and sounds: its own fingers at once, other people's once the car
 * reports them. Pure: times are arguments.
 */

/** @import {Glow} from '../lib/types.js' */

/** How long a push glows at least, as on the car (GLOW_S). */
export const GLOW_MS = 250;
/** As many stars as fit on a phone. */
const STARS_MOST = 16;
/** Modes in which the car plays and fingers wait. */
const CARS_TURN = ['show', 'cheer', 'sad'];

/** @typedef {{tones: number[], jingle: '' | 'cheer' | 'sad'}} Sounds */

export class Model {
  constructor() {
    /** The button under each pointer or key. @type {Map<string, number>} */
    this.fingers = new Map();
    /** Until when our own push glows, by button. @type {number[]} */
    this.untilMs = [];
    /** The car's last message; null without a link. @type {Glow | null} */
    this.glow = null;
  }

  get mode() {
    return this.glow?.mode ?? 'free';
  }

  /** Do fingers count in this mode? */
  get open() {
    return !CARS_TURN.includes(this.mode);
  }

  /** The mask of the buttons that our fingers hold down. */
  get held() {
    let held = 0;
    for (const button of this.fingers.values()) held |= 1 << button;
    return held;
  }

  /**
   * Moves a finger to this button (-1: off all buttons); returns the change.
   * @param {string} who @param {number} button @param {number} nowMs
   * @returns {'push' | 'change' | ''}
   */
  finger(who, button, nowMs) {
    if ((this.fingers.get(who) ?? -1) === button) return '';
    this.fingers.delete(who);
    if (button < 0) return 'change';
    this.fingers.set(who, button);
    if (this.open) this.untilMs[button] = nowMs + GLOW_MS;
    return 'push';
  }

  /** Lifts all fingers; true if there were any. */
  release() {
    const any = this.fingers.size > 0;
    this.fingers.clear();
    return any;
  }

  /** The mask of glowing buttons. @param {number} nowMs */
  shown(nowMs) {
    let own = 0;
    if (this.open) {
      own = this.held;
      this.untilMs.forEach((untilMs, button) => (own |= untilMs > nowMs ? 1 << button : 0));
    }
    return own | (this.glow?.lit ?? 0);
  }

  /**
   * Takes the car's message; returns the sounds to play: a push elsewhere, a step of the pattern.
   * @param {Glow} glow @param {number} nowMs @returns {Sounds}
   */
  heard(glow, nowMs) {
    const before = this.glow;
    const fresh = glow.lit & ~this.shown(nowMs);
    this.glow = glow;
    const changed = before !== null && before.mode !== glow.mode;
    const jingle = changed && (glow.mode === 'cheer' || glow.mode === 'sad') ? glow.mode : '';
    const sung = ['free', 'turn', 'show'].includes(glow.mode) && before !== null;
    return {tones: sung ? bits(fresh) : [], jingle};
  }

  /** The link is gone: forgets the car's last message. */
  lost() {
    this.glow = null;
  }
}

/** @param {number} mask */
export function bits(mask) {
  const indexes = [];
  for (let bit = 0; mask >> bit; bit += 1) if ((mask >> bit) & 1) indexes.push(bit);
  return indexes;
}

/**
 * The game in stars: `gold` for steps repeated, `now` for the pattern, `goal` for the record.
 * @param {Pick<Glow, 'mode' | 'length' | 'done' | 'best'>} glow
 * @returns {('gold' | 'now' | 'goal')[]}
 */
export function stars({mode, length, done, best}) {
  if (length === 0) return [];
  const gold = mode === 'sad' ? length - 1 : done;
  return Array.from({length: Math.min(STARS_MOST, Math.max(length, best))},
    (_, at) => (at < gold ? 'gold' : at < length ? 'now' : 'goal'));
}
