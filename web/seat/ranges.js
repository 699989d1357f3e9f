/** Distances as arcs around a small car, and what the collision guard says of them. */

import {make, setAttr, setText, show, svg} from '../lib/dom.js';
import {DRAWER_STRINGS} from './drawer-strings.js';

/** Up to where each arc counts, m, from the car outwards. */
const RINGS = [{m: 0.3, r: 36}, {m: 0.7, r: 52}, {m: 1.5, r: 68}];
const HALF_DEG = 24;
/** As the guard's stale_s, and a bit for the way to the page. */
const STALE_S = 0.25;

/** How near: which ring, and how bad. Pure. @param {number | null} rangeM */
export function nearness(rangeM) {
  if (rangeM === null) return {rings: 0, tone: 'far'};
  const ring = RINGS.findIndex(({m}) => rangeM < m);
  if (ring < 0) return {rings: 0, tone: 'far'};
  return {rings: RINGS.length - ring, tone: ['close', 'near', 'far'][ring]};
}

/** An arc of a ring; bearing 0 is up, + is left. Pure. @param {number} radius @param {number} bearing */
export function arc(radius, bearing) {
  /** @param {number} degrees */
  const at = (degrees) => {
    const angle = (degrees * Math.PI) / 180;
    const [x, y] = [-radius * Math.sin(angle), -radius * Math.cos(angle)];
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  return `M${at(bearing + HALF_DEG)}A${radius} ${radius} 0 0 1 ${at(bearing - HALF_DEG)}`;
}

/** Is it measured, and young? @param {import('../lib/types.js').Range} range */
export function holds({age_s: age, state}) {
  return state === 'ok' && age !== null && age < STALE_S;
}

/** Which way a sensor looks, in steps of 15 degrees. @param {import('../lib/types.js').Range} range */
const wayOf = (range) => Math.round(((range.bearing_deg + 360) % 360) / 15) % 24;

/**
 * One a way: of those that look the same way the nearest that measures. Pure.
 * @param {readonly {range: import('../lib/types.js').Range, good: boolean}[]} seen
 */
export function eachWay(seen) {
  /** @param {{range: import('../lib/types.js').Range}} one */
  const far = ({range}) => range.range_m ?? Infinity;
  /** @type {Map<number, {range: import('../lib/types.js').Range, good: boolean}>} */
  const ways = new Map();
  for (const one of seen) {
    const other = ways.get(wayOf(one.range));
    const better = !other || (one.good && (!other.good || far(one) < far(other)));
    if (better) ways.set(wayOf(one.range), one);
  }
  return [...ways.values()];
}

/**
 * Does another sensor look the same way, and say nothing? The guard is careful there.
 * Pure. @param {import('../lib/types.js').Range} range
 * @param {readonly {range: import('../lib/types.js').Range, good: boolean}[]} seen
 */
export function doubted(range, seen) {
  return seen.some((one) => !one.good && wayOf(one.range) === wayOf(range));
}

/**
 * What the guard has to say of where the car drives: `metres` of null is a sensor that
 * says nothing; `acts`: it holds the car back, to a stand if `stands`.
 * @typedef {{back: boolean, name: string, metres: number | null, acts: boolean,
 *   stands: boolean}} Alarm
 */

/**
 * null: nothing to say. Pure.
 * @param {Pick<import('../lib/types.js').State, 'guard' | 'throttle' | 'reason' | 'ranges'>} state
 * @returns {Alarm | null}
 */
export function alarmOf({guard, throttle, reason, ranges}) {
  if (!guard || guard.mode === 'off') return null;
  const acts = reason === 'guarded';
  // Where nothing is let through, the way that is shut is the one that was wished.
  const back = throttle < 0 || (throttle === 0 && guard.back === 0 && guard.ahead > 0);
  if (!acts && Math.abs(throttle) <= (back ? guard.back : guard.ahead)) return null;
  const name = back ? guard.back_by : guard.ahead_by;
  const range = (ranges ?? []).find((one) => one.name === name);
  const metres = range && holds(range) ? range.range_m : null;
  return {back, name, metres, acts, stands: acts && throttle === 0};
}

/**
 * A line for each sensor that says no distance: which, why, and since when. Pure.
 * @param {readonly import('../lib/types.js').Range[]} ranges
 */
export function ills(ranges) {
  return ranges.filter((range) => !holds(range)).map(({name, state, age_s: ageS}) =>
    DRAWER_STRINGS.rangeSay(name, DRAWER_STRINGS.rangeIll(state, ageS)));
}

/** All sensors in words. Pure. @param {readonly import('../lib/types.js').Range[]} ranges */
export function spoken(ranges) {
  return ranges.map((range) => {
    const {name, range_m: far, state, age_s: ageS} = range;
    if (!holds(range)) return DRAWER_STRINGS.rangeSay(name, DRAWER_STRINGS.rangeBad(DRAWER_STRINGS.rangeIll(state, ageS)));
    return DRAWER_STRINGS.rangeSay(name, far === null ? '–' : DRAWER_STRINGS.metres(far));
  }).join(', ');
}

export class Ranges {
  /** @param {SVGElement} element */
  constructor(element) {
    this.element = element;
    this.says = make('p', '');
    this.says.className = 'guard-says';
    this.says.dataset.testid = 'guard-says';
    setAttr(this.says, 'role', 'status');
    element.after(this.says);
    this.drawn = '';
  }

  /** @param {import('../lib/types.js').State} state */
  update(state) {
    const ranges = state.ranges ?? [];
    const alarm = alarmOf(state);
    show(this.element, ranges.length > 0);
    setText(this.says, alarm ? DRAWER_STRINGS.guardSays(alarm) : '');
    setAttr(this.element, 'aria-label', spoken(ranges));
    const seen = ranges.map((range) => ({range, good: holds(range)}));
    const key = JSON.stringify([alarm?.name, seen.map(({range: {name, range_m: m, state: is}, good}) =>
      [name, good && m?.toFixed(2), good || is])]);
    if (key === this.drawn) return;
    this.drawn = key;
    const parts = [
      svg('rect', {class: 'body', x: -16, y: -20, width: 32, height: 44, rx: 9}),
      svg('rect', {class: 'glass', x: -10, y: -13, width: 20, height: 11, rx: 3}),
    ];
    const shut = ranges.find(({name}) => name === alarm?.name);
    for (const {range, good} of eachWay(seen)) {
      const drawn = good ? this.arcs(range, doubted(range, seen)) : this.unknown(range);
      if (shut && wayOf(shut) === wayOf(range)) for (const part of drawn) part.classList.add('alarm');
      parts.push(...drawn);
    }
    this.element.replaceChildren(...parts);
  }

  /** A sensor that says nothing: not "nothing there". @param {import('../lib/types.js').Range} range */
  unknown({bearing_deg: bearing}) {
    const {r} = RINGS[RINGS.length - 1];
    const angle = (bearing * Math.PI) / 180;
    return [
      svg('path', {d: arc(r, bearing), class: 'arc unknown'}),
      svg('text', {x: -108 * Math.sin(angle), y: -84 * Math.cos(angle) + 5}, '?'),
    ];
  }

  /** @param {import('../lib/types.js').Range} range @param {boolean} doubt another is ill */
  arcs({bearing_deg: bearing, range_m: metres}, doubt) {
    const {rings, tone} = nearness(metres);
    const lit = RINGS.length - rings;
    const parts = RINGS.map(({r}, index) => svg('path', {
      d: arc(r, bearing), class: rings > 0 && index >= lit ? `arc ${tone}` : 'arc',
    }));
    const said = metres !== null && rings > 0 ? [DRAWER_STRINGS.metres(metres)] : [];
    if (doubt) said.push('?');
    if (said.length > 0) {
      const angle = (bearing * Math.PI) / 180;
      parts.push(svg('text', {
        x: -108 * Math.sin(angle), y: -84 * Math.cos(angle) + 5,
      }, said.join(' ')));
    }
    return parts;
  }
}
