/**
 * Plays a drive: which moment it is, and which units go into the decoder now.
 *
 * The clock never waits for the decoder: one that cannot keep up jumps to a key frame.
 * It waits for units that are still on their way from the car.
 */

import {lastUpTo} from '../plots/lines.js';

/** @import {Span, Unit} from '../types.js' */

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
/** A decoder further behind than this skips units. */
const LAG_S = 1.5;
/** No tick moves on by more than this: a page that slept does not jump. */
const TICK_MAX_S = 0.25;
const JUST_BEFORE_S = 1e-6;

/**
 * Picture output. `decodeOnly`: the unit is only a reference for a later, shown one.
 * @typedef {{push: (unit: Unit, decodeOnly: boolean) => boolean,
 *   hasRoom: () => boolean}} Output
 */

export class Player {
  /**
   * @param {{seconds: number,
   *   units: {at: (timeS: number) => Span | null, prefetch: (span: Span) => void},
   *   picture: Output, changed: () => void}} parts `changed`: plays, pauses, other speed
   */
  constructor({seconds, units, picture, changed}) {
    this.seconds = seconds;
    this.units = units;
    this.picture = picture;
    this.changed = changed;
    this.timeS = 0;
    this.speed = 1;
    this.playing = false;
    /** The units of this moment are still on their way. */
    this.waiting = true;
    /** Time of the first picture: playing begins there. */
    this.firstS = 0;
    /** There is no picture at the moment that was sought. */
    this.blank = false;
    /** Time of the last unit that went in. */
    this.fedS = -JUST_BEFORE_S;
    /** Start of the span from which units go in. */
    this.fromS = 0;
    this.needKey = true;
    this.seeking = true;
    /** Time of the sought picture; earlier ones are not shown. */
    this.targetS = -Infinity;
    /** @type {number | null} */
    this.lastMs = null;
  }

  play() {
    if (this.timeS >= this.seconds || this.timeS < this.firstS) this.seek(this.firstS);
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

  /** Changes to the next speed up or down. @param {1 | -1} way */
  faster(way) {
    const next = SPEEDS[SPEEDS.indexOf(this.speed) + way];
    if (next) this.setSpeed(next);
  }

  /** @param {number} timeS */
  seek(timeS) {
    this.timeS = Math.min(Math.max(timeS, 0), this.seconds);
    this.seeking = true;
  }

  /** Goes one picture on or back. @param {1 | -1} way */
  step(way) {
    if (this.playing) this.pause();
    const unit = way > 0 ? this.after(this.timeS) : this.before(this.timeS);
    if (unit) this.seek(unit.timeS);
  }

  /** Call it with every paint. @param {number} nowMs */
  tick(nowMs) {
    const elapsedS = this.lastMs === null ? 0 : Math.max(0, nowMs - this.lastMs) / 1000;
    this.lastMs = nowMs;
    const span = this.units.at(this.timeS);
    this.waiting = span === null;
    if (!span) return;
    this.units.prefetch(span);
    if (this.playing) this.advance(span, Math.min(elapsedS, TICK_MAX_S) * this.speed);
    this.feed();
  }

  /** @param {Span} span @param {number} byS */
  advance(span, byS) {
    let goalS = Math.min(this.timeS + byS, this.seconds);
    // It waits at the end of the loaded units.
    if (goalS >= span.hiS && !this.units.at(span.hiS)) goalS = span.hiS - JUST_BEFORE_S;
    this.timeS = Math.max(this.timeS, goalS);
    if (this.timeS >= this.seconds) this.pause();
  }

  /** Puts in the units that are due, as far as there is room. */
  feed() {
    const current = this.units.at(this.timeS);
    if (!current) return;
    if (this.seeking || this.timeS - this.fedS > LAG_S) this.aim(current);
    for (;;) {
      const span = this.units.at(Math.max(this.fedS, this.fromS));
      if (!span) return;
      const unit = this.nextUnit(span);
      if (!unit) {
        this.fedS = Math.max(this.fedS, this.timeS);
        return;
      }
      if (unit.timeS > Math.max(this.timeS, this.targetS) || !this.picture.hasRoom()) return;
      this.fedS = unit.timeS;
      this.blank = false;
      this.needKey = !this.picture.push(unit, unit.timeS < this.targetS);
    }
  }

  /**
   * Finds the unit to begin with, so that the picture of this moment comes out; before
   * the first picture, that one.
   * @param {Span} here
   */
  aim({loS, units}) {
    const index = lastUpTo(units.map((unit) => unit.timeS), this.timeS);
    let from = index;
    while (from >= 0 && !units[from].key) from -= 1;
    const keyS = from < 0 ? null : units[from].timeS;
    const image = index < 0 ? units.find((unit) => unit.key) : units[index];
    const imageS = image?.timeS ?? -Infinity;
    if (this.seeking) {
      this.targetS = imageS;
      this.blank = !image;
    }
    this.seeking = false;
    // A span starts with its own reference units: the one before need not be loaded.
    if (keyS !== null) this.fromS = loS;
    const onTheWay = !this.needKey && this.fedS <= imageS &&
      (keyS === null || this.fedS >= keyS);
    if (onTheWay) return;
    this.needKey = true;
    this.fedS = (keyS ?? this.timeS) - JUST_BEFORE_S;
  }

  /** The next unit that has not gone in, up to this moment's span. @param {Span} from */
  nextUnit(from) {
    for (let span = /** @type {Span | null} */ (from); span;) {
      const unit = span.units.find(({timeS, key}) =>
        timeS > this.fedS && (key || !this.needKey));
      if (unit) return unit;
      span = span.hiS <= this.timeS ? this.units.at(span.hiS) : null;
    }
    return null;
  }

  /** The first picture after a moment. @param {number} timeS */
  after(timeS) {
    const span = this.units.at(timeS);
    const next = span?.units.find((unit) => unit.timeS > timeS);
    if (next || !span || span.hiS >= this.seconds) return next;
    return this.units.at(span.hiS)?.units.find((unit) => unit.timeS > timeS);
  }

  /** The last picture before the one at a moment. @param {number} timeS */
  before(timeS) {
    const units = this.units.at(timeS)?.units ?? [];
    const index = lastUpTo(units.map((unit) => unit.timeS), timeS);
    return units[index - 1];
  }

  /** The decoder needs a key frame. */
  lost() {
    this.needKey = true;
    this.seeking = true;
  }
}
