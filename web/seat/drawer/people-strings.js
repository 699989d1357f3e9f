/** Texts of the list of permitted drivers, from lang/. */

import {ago, dates, listed, named} from '../../lang/forms.js';
import {t, fill} from '../../lang/words.js';

const JUST_S = 60;
const clock = dates({timeStyle: 'short'});

/** The time of day in so many seconds. @param {number} seconds */
export const timeIn = (seconds) => clock(Date.now() + seconds * 1000);

/** Text for the time a person is away. @param {number} seconds */
const away = (seconds) =>
  (seconds < JUST_S ? t.people.gone : fill(t.people.lastHere, {ago: ago(seconds)}));

/** A person's place, as the car names it. @param {string} where */
const place = (where) => named(t.people.places, where) ?? where;

export const PEOPLE_STRINGS = {
  undoOf: (/** @type {string} */ name) => fill(t.people.undoOf, {name}),
  endOf: (/** @type {string} */ name) => fill(t.people.endOf, {name}),
  /** @param {import('../../lib/types.js').Person} person */
  describe: ({where, grown_up, drives, you, away_s, left_s, watches}) => listed([
    you ? t.people.you : '',
    grown_up ? t.people.grownUp : watches ? t.people.watches : t.people.driver,
    drives ? t.people.wheel : '',
    left_s ? fill(t.people.until, {time: timeIn(left_s)}) : '', where ? place(where) : t.people.unused,
    where && away_s ? away(away_s) : '',
  ]),
};
