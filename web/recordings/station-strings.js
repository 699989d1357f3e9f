/** What the page says of a base station: how full it is, what waits, what comes now. */

import {STRINGS} from './strings.js';

/** @import {CarState, OfficeState, Storage} from './types.js' */

const {size} = STRINGS;

/** How much waits, how fast it goes, and how long that takes. @param {CarState | OfficeState} one */
function moving({waiting_bytes: bytes, rate}) {
  const left = rate ? `, ${size(rate)}/s, ${STRINGS.spoken(Math.ceil(bytes / rate))} to go` : '';
  return `, ${size(bytes)}${left}`;
}

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
  /** @param {CarState} car */
  car: (car) => car.waiting ? `${car.state}: ${STRINGS.files(car.waiting)} wait${moving(car)}`
    : car.state === 'ok' ? 'all of it is here' : car.state,
  /** @param {OfficeState} office */
  office: (office) => office.waiting
    ? `${office.state}: ${office.waiting} sessions wait${moving(office)}`
    : office.state === 'ok' ? 'all of it is there' : office.state,
  /** @param {OfficeState} office */
  fault: ({last_fault: fault, fault_s: seconds, state}) => fault && fault !== state
    ? `${new Date(seconds * 1000).toLocaleString()}: ${fault}` : '',
  /** @param {CarState} car */
  card: ({card_free: free, card_total: total}) =>
    total ? `its card: ${size(free)} of ${size(total)} are free` : '',
  pulling: (/** @type {string} */ car) => `How much of ${car} is here`,
  sending: (/** @type {string} */ office) => `How much of it is at ${office}`,
  cardOf: (/** @type {string} */ car) => `How full the card of ${car} is`,
  failed: (/** @type {string} */ why) => `The figures did not come: ${why}. Trying again.`,
};
