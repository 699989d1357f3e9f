/** Texts of the list of permitted drivers, from lang/. */

import {ago, dates, named} from '../lang/forms.js';
import {W, fill} from '../lang/words.js';

const JUST_S = 60;
const clock = dates({timeStyle: 'short'});

/** The time of day in so many seconds. @param {number} seconds */
export const timeIn = (seconds) => clock(Date.now() + seconds * 1000);

/** Text for the time a person is away. @param {number} seconds */
const away = (seconds) =>
  (seconds < JUST_S ? W.who.gone : fill(W.who.lastHere, {ago: ago(seconds)}));

/** A person's place, as the car names it. @param {string} where */
const place = (where) => named(W.who.places, where) ?? where;

export const WHO_STRINGS = {
  endOf: (/** @type {string} */ name) => fill(W.who.endOf, {name}),
  /** @param {import('../lib/types.js').Person} person */
  says: ({where, grown_up, drives, you, away_s, left_s, watches}) => [
    you ? W.who.you : '',
    grown_up ? W.who.grownUp : watches ? W.who.watches : W.who.driver,
    drives ? W.who.wheel : '',
    left_s ? fill(W.who.until, {time: timeIn(left_s)}) : '', where ? place(where) : W.who.unused,
    where && away_s ? away(away_s) : '',
  ].filter(Boolean).join(', '),
};
