/** Texts of the list of permitted drivers, from lang/. */

import {ago, dates, named} from '../lang/forms.js';
import {t, fill} from '../lang/words.js';

const JUST_S = 60;
const clock = dates({timeStyle: 'short'});

/** The time of day in so many seconds. @param {number} seconds */
export const timeIn = (seconds) => clock(Date.now() + seconds * 1000);

/** Text for the time a person is away. @param {number} seconds */
const away = (seconds) =>
  (seconds < JUST_S ? t.who.gone : fill(t.who.lastHere, {ago: ago(seconds)}));

/** A person's place, as the car names it. @param {string} where */
const place = (where) => named(t.who.places, where) ?? where;

export const WHO_STRINGS = {
  endOf: (/** @type {string} */ name) => fill(t.who.endOf, {name}),
  /** @param {import('../lib/types.js').Person} person */
  says: ({where, grown_up, drives, you, away_s, left_s, watches}) => [
    you ? t.who.you : '',
    grown_up ? t.who.grownUp : watches ? t.who.watches : t.who.driver,
    drives ? t.who.wheel : '',
    left_s ? fill(t.who.until, {time: timeIn(left_s)}) : '', where ? place(where) : t.who.unused,
    where && away_s ? away(away_s) : '',
  ].filter(Boolean).join(', '),
};
