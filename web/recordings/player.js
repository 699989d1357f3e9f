/**
 * A drive played: where it stands, and which units go into the decoder now.
 *
 * The clock never waits for the decoder: one that cannot keep up jumps to a key frame.
 * It waits for pictures that are still on their way from the car.
 */

import {lastUpTo} from './shape.js';

/** @typedef {import('./types.js').Stretch} Stretch */
/** @typedef {import('./types.js').Unit} Unit */

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
/** Further behind than this, and what is between is left out. */
const LAG_S = 1.5;
/** A page that slept does not jump. */
const TICK_MAX_S = 0.25;
const JUST_BEFORE_S = 1e-6;

/**
 * What shows the pictures. `hidden`: only on the way to one that is to be seen.
 * @typedef {{push: (unit: Unit, hidden: boolean) => boolean, room: () => boolean}} Glass
 */

export class Player {
  /**
   * @param {{seconds: number,
   *   reel: {at: (timeS: number) => Stretch | null, ahead: (stretch: Stretch) => void},
   *   glass: Glass, changed: () => void}} parts `changed`: plays, pauses, other speed
   */
  constructor({seconds, reel, glass, changed}) {
    this.seconds = seconds;
    this.reel = reel;
    this.glass = glass;
    this.changed = changed;
    this.timeS = 0;
    this.speed = 1;
    this.playing = false;
    /** The pictures of this moment are still on their way. */
    this.waiting = true;
    /** There is no picture of the moment that was sought. */
    this.blank = false;
    /** The last unit that went in. */
    this.doneS = -JUST_BEFORE_S;
    /** Where the stretch begins from which it goes on. */
    this.fromS = 0;
    this.needKey = true;
    this.sought = true;
    /** The picture that was sought: before it none is shown. */
    this.targetS = -Infinity;
    /** @type {number | null} */
    this.lastMs = null;
  }

  play() {
    if (this.timeS >= this.seconds) this.seek(0);
    this.playing = true;
    this.changed();
  }

  pause() {
    this.playing = false;
    this.changed();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.changed();
  }

  /** To the next speed up or down. @param {1 | -1} way */
  faster(way) {
    const next = SPEEDS[SPEEDS.indexOf(this.speed) + way];
    if (next) this.setSpeed(next);
  }

  /** @param {number} timeS */
  seek(timeS) {
    this.timeS = Math.min(Math.max(timeS, 0), this.seconds);
    this.sought = true;
  }

  /** One picture on or back. @param {1 | -1} way */
  step(way) {
    if (this.playing) this.pause();
    const unit = way > 0 ? this.after(this.timeS) : this.before(this.timeS);
    if (unit) this.seek(unit.timeS);
  }

  /** Call it with every paint. @param {number} nowMs */
  tick(nowMs) {
    const elapsedS = this.lastMs === null ? 0 : Math.max(0, nowMs - this.lastMs) / 1000;
    this.lastMs = nowMs;
    const here = this.reel.at(this.timeS);
    this.waiting = here === null;
    if (!here) return;
    this.reel.ahead(here);
    if (this.playing) this.advance(here, Math.min(elapsedS, TICK_MAX_S) * this.speed);
    this.feed();
  }

  /** @param {Stretch} here @param {number} byS */
  advance(here, byS) {
    let goalS = Math.min(this.timeS + byS, this.seconds);
    // It waits at the end of what is here.
    if (goalS >= here.hiS && !this.reel.at(here.hiS)) goalS = here.hiS - JUST_BEFORE_S;
    this.timeS = Math.max(this.timeS, goalS);
    if (this.timeS >= this.seconds) this.pause();
  }

  /** Puts in what is due, as far as there is room. */
  feed() {
    const here = this.reel.at(this.timeS);
    if (!here) return;
    if (this.sought || this.timeS - this.doneS > LAG_S) this.aim(here);
    for (;;) {
      const stretch = this.reel.at(Math.max(this.doneS, this.fromS));
      if (!stretch) return;
      const unit = this.following(stretch);
      if (!unit) {
        this.doneS = Math.max(this.doneS, this.timeS);
        return;
      }
      if (unit.timeS > Math.max(this.timeS, this.targetS) || !this.glass.room()) return;
      this.doneS = unit.timeS;
      this.blank = false;
      this.needKey = !this.glass.push(unit, unit.timeS < this.targetS);
    }
  }

  /**
   * Where to begin, so that the picture of this moment comes out; before the first one,
   * that one.
   * @param {Stretch} here
   */
  aim({loS, units}) {
    const index = lastUpTo(units.map((unit) => unit.timeS), this.timeS);
    let from = index;
    while (from >= 0 && !units[from].key) from -= 1;
    const keyS = from < 0 ? null : units[from].timeS;
    const image = index < 0 ? units.find((unit) => unit.key) : units[index];
    const imageS = image?.timeS ?? -Infinity;
    if (this.sought) {
      this.targetS = imageS;
      this.blank = !image;
    }
    this.sought = false;
    // What leads up to a stretch is in it: the one before need not be here.
    if (keyS !== null) this.fromS = loS;
    const onTheWay = !this.needKey && this.doneS <= imageS &&
      (keyS === null || this.doneS >= keyS);
    if (onTheWay) return;
    this.needKey = true;
    this.doneS = (keyS ?? this.timeS) - JUST_BEFORE_S;
  }

  /** The next unit that has not gone in, up to this moment's stretch. @param {Stretch} from */
  following(from) {
    for (let stretch = /** @type {Stretch | null} */ (from); stretch;) {
      const unit = stretch.units.find(({timeS, key}) =>
        timeS > this.doneS && (key || !this.needKey));
      if (unit) return unit;
      stretch = stretch.hiS <= this.timeS ? this.reel.at(stretch.hiS) : null;
    }
    return null;
  }

  /** The first picture after a moment. @param {number} timeS */
  after(timeS) {
    const stretch = this.reel.at(timeS);
    const found = stretch?.units.find((unit) => unit.timeS > timeS);
    if (found || !stretch || stretch.hiS >= this.seconds) return found;
    return this.reel.at(stretch.hiS)?.units.find((unit) => unit.timeS > timeS);
  }

  /** The last picture before the one of a moment. @param {number} timeS */
  before(timeS) {
    const units = this.reel.at(timeS)?.units ?? [];
    const index = lastUpTo(units.map((unit) => unit.timeS), timeS);
    return units[index - 1];
  }

  /** The decoder lost its place. */
  lost() {
    this.needKey = true;
    this.sought = true;
  }
}
