/** Words of who.js. */

import {timeIn} from './invite-strings.js';

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/** How long somebody has been away, in one unit. @param {number} seconds */
function away(seconds) {
  if (seconds < MINUTE_S) return 'gone just now';
  if (seconds < HOUR_S) return `gone for ${Math.round(seconds / MINUTE_S)} min`;
  if (seconds < DAY_S) return `gone for ${Math.round(seconds / HOUR_S)} h`;
  return `gone for ${Math.round(seconds / DAY_S)} days`;
}

export const WHO_STRINGS = {
  title: 'Who may drive',
  lock: 'Lock again',
  invite: 'Invite somebody',
  unused: 'not used yet',
  end: 'End',
  endOf: (/** @type {string} */ name) => `End what ${name} may do`,
  /** @param {import('../lib/types.js').Person} person */
  says: ({where, grown_up, drives, you, away_s, left_s, watches}) => [
    you ? 'you' : '', grown_up ? 'grown-up' : watches ? 'watches' : 'driver',
    drives ? 'at the wheel' : '',
    left_s ? `until ${timeIn(left_s)}` : '', where || WHO_STRINGS.unused,
    where && away_s ? away(away_s) : '',
  ].filter(Boolean).join(', '),
};
