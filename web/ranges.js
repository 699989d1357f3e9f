/** Distances as arcs around a small car. */

import {mark, show, svg} from './dom.js';
import {WORDS} from './strings.js';

/** Up to where each arc counts, m, from the car outwards. */
const RINGS = [{m: 0.3, r: 36}, {m: 0.7, r: 52}, {m: 1.5, r: 68}];
const HALF_DEG = 24;
const STALE_S = 1;

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

/** Is it measured, and young? @param {import('./types.js').Range} range */
export function holds({age_s: age, state}) {
  return state === 'ok' && age !== null && age < STALE_S;
}

export class Ranges {
  /** @param {SVGElement} element */
  constructor(element) {
    this.element = element;
    this.drawn = '';
  }

  /** @param {readonly import('./types.js').Range[]} ranges */
  update(ranges) {
    show(this.element, ranges.length > 0);
    const seen = ranges.map((range) => ({range, good: holds(range)}));
    const key = JSON.stringify(seen.map(({range: {name, range_m: m, state}, good}) =>
      [name, good && m?.toFixed(2), good || state]));
    if (key === this.drawn) return;
    this.drawn = key;
    const parts = [
      svg('rect', {class: 'body', x: -16, y: -20, width: 32, height: 44, rx: 9}),
      svg('rect', {class: 'glass', x: -10, y: -13, width: 20, height: 11, rx: 3}),
    ];
    for (const {range, good} of seen) {
      parts.push(...(good ? this.arcs(range) : this.unknown(range)));
    }
    this.element.replaceChildren(...parts);
    mark(this.element, 'aria-label', seen.map(({range, good}) => {
      const far = range.range_m === null ? '–' : WORDS.metres(range.range_m);
      return WORDS.rangeSay(range.name, good ? far : WORDS.rangeBad(range.state));
    }).join(', '));
  }

  /** A sensor that says nothing: not "nothing there". @param {import('./types.js').Range} range */
  unknown({bearing_deg: bearing}) {
    const {r} = RINGS[RINGS.length - 1];
    const angle = (bearing * Math.PI) / 180;
    return [
      svg('path', {d: arc(r, bearing), class: 'arc unknown'}),
      svg('text', {x: -108 * Math.sin(angle), y: -84 * Math.cos(angle) + 5}, '?'),
    ];
  }

  /** @param {import('./types.js').Range} range */
  arcs({bearing_deg: bearing, range_m: metres}) {
    const {rings, tone} = nearness(metres);
    const lit = RINGS.length - rings;
    const parts = RINGS.map(({r}, index) => svg('path', {
      d: arc(r, bearing), class: rings > 0 && index >= lit ? `arc ${tone}` : 'arc',
    }));
    if (metres !== null && rings > 0) {
      const angle = (bearing * Math.PI) / 180;
      parts.push(svg('text', {
        x: -108 * Math.sin(angle), y: -84 * Math.cos(angle) + 5,
      }, WORDS.metres(metres)));
    }
    return parts;
  }
}
