/** What the page says of a base station: how full it is, what waits, what comes now. */

import {STRINGS} from './strings.js';

/** @import {CarState, Storage} from './types.js' */

const {size} = STRINGS;

export const STATION_STRINGS = {
  /** @param {Storage['store']} store @param {number} waits */
  brief: ({free}, waits) => `${size(free)} free${waits ? `, ${size(waits)} wait` : ''}`,
  /** @param {Storage['store']} store */
  store: ({path, sessions, segments, bytes, free, total}) =>
    `${path}: ${sessions} sessions in ${STRINGS.files(segments)}, ${size(bytes)}. ` +
    `${size(free)} of ${size(total)} are free.`,
  /** @param {number} unread @param {string} why */
  catalogue: (unread, why) => [
    unread ? `${unread} sessions are not listed yet.` : '',
    why ? `The list was made anew: ${why}.` : '',
  ].filter(Boolean).join(' '),
  /** @param {CarState} car @param {number | null} rate @param {number | null} leftS */
  car: ({state, waiting, waiting_bytes: bytes}, rate, leftS) => {
    if (!waiting) return state === 'ok' ? 'all of it is here' : state;
    const speed = rate === null ? '' : `, ${size(rate)}/s`;
    const left = leftS === null ? '' : `, ${STRINGS.spoken(Math.ceil(leftS))} to go`;
    return `${state}: ${STRINGS.files(waiting)} wait, ${size(bytes)}${speed}${left}`;
  },
  /** @param {CarState} car */
  card: ({card_free: free, card_total: total}) =>
    total ? `its card: ${size(free)} of ${size(total)} are free` : '',
  pulling: (/** @type {string} */ car) => `How much of ${car} is here`,
  cardOf: (/** @type {string} */ car) => `How full the card of ${car} is`,
  failed: (/** @type {string} */ why) => `The figures did not come: ${why}. Trying again.`,
};
