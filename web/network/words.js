/** Texts for a state, from lang/, and the picture of a QR code. */

import {ago} from '../lang/forms.js';
import {t, fill, joined, number, said} from '../lang/words.js';

/** @import {NetworkState} from '../lib/types.js' */

const STRONG = 66;
const GOOD = 40;

/**
 * The car's network, and the next step.
 * @param {NetworkState} state @param {string} port of this page, with its colon
 */
export const stateText = ({phase, ssid, own, name, join_s: joinS}, port) =>
  fill(t.network.phases[phase], {
    ssid, own: own.ssid, seconds: number(joinS),
    address: `http://${name || `${own.ssid.toLowerCase()}.local`}${port}/`,
  });

/** Reason for missing the requested network; '' if joined. @param {NetworkState} state */
export function reasonText({phase, ssid, reason}) {
  if (!reason) return '';
  return phase === 'absent' || !ssid ? fill(t.network.absent, {why: said(reason)}) : fill(t.network.notJoined, {ssid, why: said(reason)});
}

/** Age of the list of networks. @param {NetworkState} state */
export function scanText({phase, seen_s: ageS}) {
  if (ageS === null) return t.network.unheard;
  const when = fill(t.network.heard, {ago: ago(ageS)});
  return phase === 'own' ? joined(when, t.network.deaf) : when;
}

/** @param {number} share of the strongest, in percent */
export const strength = (share) =>
  (share >= STRONG ? t.network.strong : share >= GOOD ? t.network.good : t.network.weak);

/** The dark squares of a QR code, with its quiet zone. @param {string[]} rows */
export function qrPath(rows) {
  const quiet = 4;
  const squares = rows.flatMap((row, y) => [...row].flatMap((dark, x) =>
    (dark === '1' ? [`M${x + quiet} ${y + quiet}h1v1h-1z`] : [])));
  return {path: squares.join(''), size: rows.length + 2 * quiet};
}
