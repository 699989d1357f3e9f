/** The messages of the menu; part of the wire once the drawer is loaded. */

import {
  DOWN, PLAIN, UP, any, anyText, flag, count, known, list, maybe, millis, number, object, orNull, text,
} from '../../lib/wire.js';

const CODE_MOST = 32;
const ID = /^[A-Za-z0-9-]{8,}$/;
const RANGE = {
  name: anyText, bearing_deg: any, range_m: known, age_s: known, state: anyText,
};
const GUARD = {
  mode: anyText, stop_m: any, ahead: any, back: any, ahead_by: anyText, back_by: anyText,
  measured: maybe(flag),
};
const PERSON = {
  id: anyText, name: anyText, where: anyText, grown_up: flag, drives: flag, you: flag,
  away_s: maybe(any), left_s: maybe(any), watches: maybe(flag),
};

const ASKING = {phase: anyText, left_s: any, id: maybe(anyText), name: maybe(anyText)};

Object.assign(UP, {
  name: {name: text(32, PLAIN)}, car_name: {name: text(256)}, ask: {}, answer: {id: text(64, ID), give: flag},
  unlock: {code: text(CODE_MOST)},
  limit: {throttle: number(0, 1)}, guard: {mode: text(5, /^(off|warn|limit)$/)},
  record: {on: flag}, keep: {}, mark: {text: maybe(text(64, PLAIN))},
  report: {
    path: text(16, PLAIN), picture_ms: maybe(orNull(millis)), link_ms: maybe(orNull(millis)),
    fps: maybe(number(0, 1000)), dropped: maybe(count),
  },
  intercom: {on: flag}, lock: {}, who: {}, end: {id: text(64, ID)},
});
Object.assign(DOWN.state, {
  ranges: maybe(list(RANGE)), guard: maybe(orNull(object(GUARD))),
  wait_s: maybe(any), asking: maybe(orNull(object(ASKING))), intercom: maybe(flag),
  lowered_rate: maybe(anyText),
});
Object.assign(DOWN, {car_name: {car: anyText}, people: {people: list(PERSON), unsaved: maybe(anyText)}});

/**
 * A code as the car has it: people write it in capitals, in groups, with dashes, and some
 * keyboards in full width.
 * @param {string} typed
 */
export const tidyCode = (typed) =>
  typed.normalize('NFKC').toLowerCase().replace(/[\s\p{Pd}]/gu, '').slice(0, CODE_MOST);
