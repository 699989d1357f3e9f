/** The page's requests to the car: see wifi/api.py. */

import {refusalText, withTexts} from '../lang/forms.js';

/**
 * @typedef {{ssid: string, strength: number, security: 'open' | 'key' | 'other'}} Network
 * @typedef {{phase: 'absent' | 'searching' | 'known' | 'opening' | 'own' | 'joining' | 'failed',
 *   own: {ssid: string, key: string, qr: string[]}, ssid: string, reason: string,
 *   networks: Network[], seen_s: number | null, name: string, driven: boolean,
 *   join_s: number, address: string}} NetworkState
 */

/** The car requires the grown-up code. */
export class Locked extends Error {}

/** The car refused the request; the message has the reason. */
export class Refused extends Error {}

/** @param {string} url @param {RequestInit} [options] */
async function ask(url, options) {
  const answer = await fetch(url, options);
  if (answer.ok) return answer;
  const message = await refusalText(answer);
  throw answer.status === 401 ? new Locked(message) : new Refused(message);
}

export const API = {
  /** @returns {Promise<NetworkState>} */
  state: async () => withTexts(await (await ask('api/network')).json()),
  look: () => ask('api/network/look', {method: 'POST'}),
  /** @param {string} ssid @param {string} key */
  join: (ssid, key) => ask(`api/network/join?${new URLSearchParams({ssid})}`, {
    method: 'POST', headers: {'X-Wifi-Key': key},
  }),
  /** @param {string} code */
  unlock: (code) => ask('api/recordings/unlock', {
    method: 'POST', headers: {'X-Drive-Code': code},
  }),
};
