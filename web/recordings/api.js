/** The page's requests to the car: see library/api/recordings_api.py. */

import {refusalText, withTexts} from '../lang/forms.js';
import {t} from '../lang/words.js';

/** @import {Export, ExportRequest, Listing, Moments, RecallState, Storage, Table, WeekFigures} from './types.js' */

/** The car requires the drive code, a base station its password. */
export class Locked extends Error {
  /** @param {string} message @param {string | null} openedBy "code" or "password" */
  constructor(message, openedBy) {
    super(message);
    this.openedBy = openedBy;
  }
}

/** The file is gone or damaged: a retry cannot succeed. */
export class Refused extends Error {}

/** The search took too long. */
export class TooLong extends Refused {}

/** Statuses worth asking again: the file is being written, or there were too many requests. */
const RETRYABLE = [409, 429];

const DRIVES = 'api/recordings/drives';
const EXPORTS = 'api/recordings/exports';

/** @param {string} name */
const of = (name) => `api/recordings/${encodeURIComponent(name)}`;

/** @param {string} url @param {RequestInit} [options] */
async function ask(url, options) {
  const answer = await fetch(url, options).catch((fault) => {
    throw fault instanceof TypeError ? new TypeError(t.recordings.noAnswer) : fault; // the browser's text is English
  });
  if (answer.ok) return answer;
  const message = (await refusalText(answer)).replace(/[.。]$/, '');  // it becomes part of a sentence
  if (answer.status === 401) throw new Locked(message, answer.headers.get('X-Opened-By'));
  if (answer.status === 408) throw new TooLong(message);
  const refused = answer.status >= 400 && answer.status < 500;
  throw refused && !RETRYABLE.includes(answer.status) ? new Refused(message) : new Error(message);
}

export const API = {
  /** @param {URLSearchParams} query @returns {Promise<Listing>} */
  list: async (query) => (await ask(`${DRIVES}?${query}`)).json(),
  /** @param {string} id @param {string} title */
  rename: async (id, title) => {
    const query = new URLSearchParams({title});
    await ask(`${DRIVES}/${encodeURIComponent(id)}/title?${query}`, {method: 'POST'});
  },
  /** @param {string} id @returns {Promise<{gone: string[], stay: string[]}>} */
  remove: async (id) =>
    (await ask(`${DRIVES}/${encodeURIComponent(id)}/delete`, {method: 'POST'})).json(),
  /**
   * @param {string} name @param {number} points about how many of each line
   * @returns {Promise<Table>}
   */
  table: async (name, points) => withTexts(await (await ask(`${of(name)}/table?points=${points}`)).json()),
  /** @param {string} name @param {number} fromS @param {number} seconds */
  units: async (name, fromS, seconds) =>
    (await ask(`${of(name)}/units?from=${fromS}&seconds=${seconds}`)).arrayBuffer(),
  /** @param {string} name @param {number} [fromS] */
  thumbnail: async (name, fromS = 0) =>
    (await ask(`${of(name)}/thumbnail?from=${fromS}`)).arrayBuffer(),
  /** @param {string} name @param {number} fromS @param {number} seconds */
  sheet: async (name, fromS, seconds) =>
    (await ask(`${of(name)}/sheet?from=${fromS}&seconds=${seconds}`)).arrayBuffer(),
  /** Of a base station. @param {URLSearchParams} conditions @returns {Promise<Moments>} */
  moments: async (conditions) => (await ask(`api/moments?${conditions}`)).json(),
  /** @returns {Promise<WeekFigures>} */
  weeks: async () => (await ask('api/moments/weeks')).json(),
  /** A base station's figures. @returns {Promise<Storage>} */
  storage: async () => withTexts(await (await ask('api/status')).json()),
  /** Brings an archived drive back. @param {string} id @returns {Promise<RecallState>} */
  recall: async (id) => (await ask(`${DRIVES}/${encodeURIComponent(id)}/recall`, {method: 'POST'})).json(),
  /** @param {string} id @returns {Promise<RecallState>} */
  cancelRecall: async (id) =>
    (await ask(`${DRIVES}/${encodeURIComponent(id)}/recall`, {method: 'DELETE'})).json(),
  file: of,
  /** @param {ExportRequest} options @returns {Promise<Export>} */
  begin: async (options) => withTexts(await (await ask(EXPORTS, {
    method: 'POST', body: JSON.stringify(options),
  })).json()),
  /** @param {string} id @returns {Promise<Export>} */
  exported: async (id) => withTexts(await (await ask(`${EXPORTS}/${id}`)).json()),
  /** @param {string} id */
  cancel: (id) => ask(`${EXPORTS}/${id}`, {method: 'DELETE', keepalive: true}),
  /** @param {string} id */
  exportFile: (id) => `${EXPORTS}/${id}/file`,
  /**
   * Sends the code in a header of our own, which no other page can send.
   * @param {string} code
   */
  unlock: async (code) => {
    await ask('api/recordings/unlock', {method: 'POST', headers: {'X-Drive-Code': code}});
  },
};
