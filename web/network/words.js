/** What the page says of a state, and the picture of a QR code. Pure. */

import {STRINGS} from './strings.js';

/** @import {NetworkState} from './api.js' */

/**
 * Where the car is, and what to do.
 * @param {NetworkState} state @param {string} port of this page, with its colon
 */
export function where({phase, ssid, own, name, join_s: joinS}, port) {
  const at = `http://${name || `${own.ssid.toLowerCase()}.local`}${port}/`;
  const words = {
    absent: STRINGS.absent, searching: STRINGS.searching, known: STRINGS.known(ssid),
    opening: STRINGS.opening(own.ssid), own: STRINGS.inOwn(own.ssid),
    joining: STRINGS.joining(ssid, own.ssid, joinS, at), failed: STRINGS.failed,
  };
  return words[phase];
}

/** Why it is not where somebody wanted it; '' if it is. @param {NetworkState} state */
export function why({phase, ssid, reason}) {
  if (!reason) return '';
  return STRINGS.notJoined(phase === 'absent' ? '' : ssid, reason);
}

/** The dark squares of a QR code, with its quiet zone. @param {string[]} rows */
export function qrPath(rows) {
  const quiet = 4;
  const squares = rows.flatMap((row, y) => [...row].flatMap((dark, x) =>
    (dark === '1' ? [`M${x + quiet} ${y + quiet}h1v1h-1z`] : [])));
  return {path: squares.join(''), size: rows.length + 2 * quiet};
}
