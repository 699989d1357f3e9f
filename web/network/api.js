/** The page's requests to the car: see wifi/api.py. */

import {ask, askJson} from '../lib/http.js';

/** @import {NetworkState} from '../lib/types.js' */

export const API = {
  /** @returns {Promise<NetworkState>} */
  state: () => askJson('api/network'),
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
