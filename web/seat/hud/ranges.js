/** Draws distances as arcs around a small car, and shows the collision guard's warnings. */

import {listed} from '../../lang/forms.js';
import {make, setAttr, setText, show, svg} from '../../lib/dom.js';
import {DRAWER_STRINGS} from '../drawer/drawer-strings.js';

/** @import {Range, State} from '../../lib/types.js' */

/** The arcs from the car outwards: an arc is lit if something is nearer than `m` metres. */
const RINGS = [{m: 0.3, r: 36}, {m: 0.7, r: 52}, {m: 1.5, r: 68}];
const HALF_DEG = 24;
/** Time that a state may take from the car to the page. */
const WAY_S = 0.05;
/** Age from which a range counts as unseen; by the welcome of the car. */
let staleS = 0.2 + WAY_S;

/** Takes the age of a stale range from the car's profile. @param {number} ms */
export function setStale(ms) {
  staleS = ms / 1000 + WAY_S;
}

/** How many rings a distance lights, and their tone. Pure. @param {number | null} rangeM */
export function nearness(rangeM) {
  if (rangeM === null) return {rings: 0, tone: 'far'};
  const ring = RINGS.findIndex(({m}) => rangeM < m);
  if (ring < 0) return {rings: 0, tone: 'far'};
  return {rings: RINGS.length - ring, tone: ['close', 'near', 'far'][ring]};
}

/**
 * The SVG path of an arc; bearing 0 is up, positive is left. Pure.
 * @param {number} radius @param {number} bearing
 */
export function arc(radius, bearing) {
  /** @param {number} degrees */
  const at = (degrees) => {
    const angle = (degrees * Math.PI) / 180;
    const [x, y] = [-radius * Math.sin(angle), -radius * Math.cos(angle)];
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  return `M${at(bearing + HALF_DEG)}A${radius} ${radius} 0 0 1 ${at(bearing - HALF_DEG)}`;
}

/** Is this a measurement, and a fresh one? @param {Range} range */
export function isFresh({age_s: age, state}) {
  return state === 'ok' && age !== null && age < staleS;
}

/** The direction of a sensor, in steps of 15 degrees. @param {Range} range */
const directionOf = (range) => Math.round(((range.bearing_deg + 360) % 360) / 15) % 24;

/**
 * One reading for each direction: the nearest that is measured. Pure.
 * @param {readonly {range: Range, good: boolean}[]} readings
 */
export function nearestEachWay(readings) {
  /** @param {{range: Range}} reading */
  const far = ({range}) => range.range_m ?? Infinity;
  /** @type {Map<number, {range: Range, good: boolean}>} */
  const ways = new Map();
  for (const reading of readings) {
    const nearest = ways.get(directionOf(reading.range));
    const better = !nearest || (reading.good && (!nearest.good || far(reading) < far(nearest)));
    if (better) ways.set(directionOf(reading.range), reading);
  }
  return [...ways.values()];
}

/**
 * Is there another sensor in this direction that measures nothing? The guard is careful
 * there. Pure. @param {Range} range
 * @param {readonly {range: Range, good: boolean}[]} readings
 */
export function isDoubted(range, readings) {
  return readings.some((reading) => !reading.good && directionOf(reading.range) === directionOf(range));
}

/**
 * The guard's warning about where the car drives. `metres` is null if the sensor measures
 * nothing; `acts`: the guard slows the car down, or stops it if `stands`.
 * @typedef {{back: boolean, name: string, metres: number | null, acts: boolean,
 *   stands: boolean}} Alarm
 */

/**
 * The guard's warning about this state, or null. Pure.
 * @param {Pick<State, 'guard' | 'throttle' | 'reason' | 'ranges'>} state
 * @returns {Alarm | null}
 */
export function alarmOf({guard, throttle, reason, ranges}) {
  if (!guard || guard.mode === 'off') return null;
  const acts = reason === 'guarded';
  // While the guard lets no motion through, the blocked direction is the wished one.
  const back = throttle < 0 || (throttle === 0 && guard.back === 0 && guard.ahead > 0);
  if (!acts && Math.abs(throttle) <= (back ? guard.back : guard.ahead)) return null;
  const name = back ? guard.back_by : guard.ahead_by;
  const range = (ranges ?? []).find((reading) => reading.name === name);
  const metres = range && isFresh(range) ? range.range_m : null;
  return {back, name, metres, acts, stands: acts && throttle === 0};
}

/**
 * A line for each sensor that measures nothing: which, why, and since when. Pure.
 * @param {readonly Range[]} ranges
 */
export function rangeFaults(ranges) {
  return ranges.filter((range) => !isFresh(range)).map(({name, state, age_s: ageS}) =>
    DRAWER_STRINGS.rangeText(name, DRAWER_STRINGS.rangeFault(state, ageS)));
}

/** All readings in words. Pure. @param {readonly Range[]} ranges */
export function rangesInWords(ranges) {
  return listed(ranges.map((range) => {
    const {name, range_m: far, state, age_s: ageS} = range;
    const {rangeText, rangeBad, rangeFault, metres} = DRAWER_STRINGS;
    if (!isFresh(range)) return rangeText(name, rangeBad(rangeFault(state, ageS)));
    return rangeText(name, far === null ? '–' : metres(far));
  }));
}

/** A text outside the arcs; it grows away from the car. @param {number} bearing @param {string} text */
function label(bearing, text) {
  const [x, y] = [-Math.sin((bearing * Math.PI) / 180), -Math.cos((bearing * Math.PI) / 180)];
  const side = Math.abs(x) < 0.3 ? 'middle' : x < 0 ? 'end' : 'start';
  return svg('text', {x: 90 * x, y: (side === 'middle' ? 90 : 82) * y, 'text-anchor': side}, text);
}

export class Ranges {
  /** @param {SVGElement} element */
  constructor(element) {
    this.element = element;
    this.warning = make('p', '');
    this.warning.className = 'guard-says';
    this.warning.dataset.testid = 'guard-says';
    setAttr(this.warning, 'role', 'status');
    element.after(this.warning);
    this.drawn = '';
  }

  /** @param {State} state */
  update(state) {
    const ranges = state.ranges ?? [];
    const alarm = alarmOf(state);
    show(this.element, ranges.length > 0);
    setText(this.warning, alarm ? DRAWER_STRINGS.guardText(alarm) : '');
    setAttr(this.element, 'aria-label', rangesInWords(ranges));
    const readings = ranges.map((range) => ({range, good: isFresh(range)}));
    const key = JSON.stringify([alarm?.name, readings.map(({range, good}) =>
      [range.name, good && range.range_m?.toFixed(2), good || range.state])]);
    if (key === this.drawn) return;
    this.drawn = key;
    const parts = [
      svg('rect', {class: 'body', x: -16, y: -20, width: 32, height: 44, rx: 9}),
      svg('rect', {class: 'glass', x: -10, y: -13, width: 20, height: 11, rx: 3}),
    ];
    const shut = ranges.find(({name}) => name === alarm?.name);
    for (const {range, good} of nearestEachWay(readings)) {
      const drawn = good ? this.arcs(range, isDoubted(range, readings)) : this.unknown(range);
      if (shut && directionOf(shut) === directionOf(range)) {
        for (const part of drawn) part.classList.add('alarm');
      }
      parts.push(...drawn);
    }
    this.element.replaceChildren(...parts);
  }

  /**
   * Draws a sensor without a reading, which does not mean free space.
   * @param {Range} range
   */
  unknown({bearing_deg: bearing}) {
    const {r} = RINGS[RINGS.length - 1];
    return [
      svg('path', {d: arc(r, bearing), class: 'arc unknown'}),
      label(bearing, '?'),
    ];
  }

  /**
   * Draws a reading.
   * @param {Range} range
   * @param {boolean} doubt another sensor measures nothing
   */
  arcs({bearing_deg: bearing, range_m: metres}, doubt) {
    const {rings, tone} = nearness(metres);
    const lit = RINGS.length - rings;
    const parts = RINGS.map(({r}, index) => svg('path', {
      d: arc(r, bearing), class: rings > 0 && index >= lit ? `arc ${tone}` : 'arc',
    }));
    const labels = metres !== null && rings > 0 ? [DRAWER_STRINGS.metres(metres)] : [];
    if (doubt) labels.push('?');
    if (labels.length > 0) parts.push(label(bearing, labels.join(' ')));
    return parts;
  }
}
