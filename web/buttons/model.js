/**
 * What a page of buttons shows and sounds: its own fingers at once, everybody else's by
 * the car's word. Pure: times are arguments.
 */

/** A push is seen for so long at least, as on the car (GLOW_S). */
export const GLOW_MS = 250;
/** The stars that fit on a phone. */
const STARS_MOST = 16;
/** The car plays: fingers wait. */
const CARS_TURN = ['show', 'cheer', 'sad'];

/** @typedef {{tones: number[], jingle: '' | 'cheer' | 'sad'}} Sounds */

export class Model {
  constructor() {
    /** Who (a pointer, a key) is on which button. @type {Map<string, number>} */
    this.fingers = new Map();
    /** Until when an own push glows. @type {number[]} */
    this.untilMs = [];
    /** The car's last word; null without a link. @type {import('../lib/types.js').Glow | null} */
    this.glow = null;
  }

  get mode() {
    return this.glow?.mode ?? 'free';
  }

  /** Fingers count. */
  get open() {
    return !CARS_TURN.includes(this.mode);
  }

  /** What our fingers hold down, a bit a button. */
  get held() {
    let held = 0;
    for (const button of this.fingers.values()) held |= 1 << button;
    return held;
  }

  /**
   * A finger is on this button now, or on none (-1). Did anything change?
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

  /** All fingers are up. Were there any? */
  release() {
    const any = this.fingers.size > 0;
    this.fingers.clear();
    return any;
  }

  /** What glows. @param {number} nowMs */
  shown(nowMs) {
    let own = 0;
    if (this.open) {
      own = this.held;
      this.untilMs.forEach((untilMs, button) => (own |= untilMs > nowMs ? 1 << button : 0));
    }
    return own | (this.glow?.lit ?? 0);
  }

  /**
   * The car's word. What is to be heard: a push somewhere else, a step of the pattern.
   * @param {import('../lib/types.js').Glow} glow @param {number} nowMs @returns {Sounds}
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

  /** The link is gone: what the car said last is no longer so. */
  lost() {
    this.glow = null;
  }
}

/** @param {number} mask */
export function bits(mask) {
  const found = [];
  for (let bit = 0; mask >> bit; bit += 1) if ((mask >> bit) & 1) found.push(bit);
  return found;
}

/**
 * The game in stars: gold ones are repeated, "now" is the pattern, "goal" the record.
 * @param {Pick<import('../lib/types.js').Glow, 'mode' | 'length' | 'done' | 'best'>} glow
 * @returns {('gold' | 'now' | 'goal')[]}
 */
export function stars({mode, length, done, best}) {
  if (length === 0) return [];
  const gold = mode === 'sad' ? length - 1 : done;
  return Array.from({length: Math.min(STARS_MOST, Math.max(length, best))},
    (_, at) => (at < gold ? 'gold' : at < length ? 'now' : 'goal'));
}
