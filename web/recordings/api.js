/** The page's requests to the car: see library/api/recordings_api.py. */

import {t} from '../lang/words.js';
import * as http from '../lib/http.js';

const {Refused} = http;

/** @import {Datasets, DatasetRequest, Export, ExportRequest, Listing, Moments, RecallState, Storage, Table, WeekFigures} from './types.js' */

const DRIVES = 'api/recordings/drives';
const EXPORTS = 'api/recordings/exports';
const DATASETS = 'api/datasets';

/** @param {string} name */
const of = (name) => `api/recordings/${encodeURIComponent(name)}`;

/**
 * The answer, or a fault as part of a sentence: without its full stop, in the page's language.
 * @template T @param {Promise<T>} answer
 */
const clause = (answer) => answer.catch((fault) => {
  if (fault instanceof Refused) fault.message = fault.message.replace(/[.。]$/, '');
  throw fault instanceof TypeError ? new TypeError(t.recordings.noAnswer) : fault; // the browser's text is English
});
/** @type {typeof http.ask} */
const ask = (url, options) => clause(http.ask(url, options));
/** @type {typeof http.askJson} */
const askJson = (url, options) => clause(http.askJson(url, options));
/** @param {string} url */
const bytes = async (url) => (await ask(url)).arrayBuffer();

export const API = {
  /** @param {URLSearchParams} query @returns {Promise<Listing>} */
  list: (query) => askJson(`${DRIVES}?${query}`),
  /** @param {string} id @param {string} title */
  rename: (id, title) => ask(
    `${DRIVES}/${encodeURIComponent(id)}/title?${new URLSearchParams({title})}`, {method: 'POST'}),
  /** @param {string} id @returns {Promise<{gone: string[], stay: string[]}>} */
  remove: (id) => askJson(`${DRIVES}/${encodeURIComponent(id)}/delete`, {method: 'POST'}),
  /**
   * @param {string} name @param {number} points about how many of each line
   * @returns {Promise<Table>}
   */
  table: (name, points) => askJson(`${of(name)}/table?points=${points}`),
  /** @param {string} name @param {number} fromS @param {number} seconds */
  units: (name, fromS, seconds) => bytes(`${of(name)}/units?from=${fromS}&seconds=${seconds}`),
  /** @param {string} name @param {number} [fromS] */
  thumbnail: (name, fromS = 0) => bytes(`${of(name)}/thumbnail?from=${fromS}`),
  /** @param {string} name @param {number} fromS @param {number} seconds */
  sheet: (name, fromS, seconds) => bytes(`${of(name)}/sheet?from=${fromS}&seconds=${seconds}`),
  /** Of a base station. @param {URLSearchParams} conditions @returns {Promise<Moments>} */
  moments: (conditions) => askJson(`api/moments?${conditions}`),
  /** @returns {Promise<WeekFigures>} */
  weeks: () => askJson('api/moments/weeks'),
  /** A base station's figures. @returns {Promise<Storage>} */
  storage: () => askJson('api/status'),
  /** Brings an archived drive back. @param {string} id @returns {Promise<RecallState>} */
  recall: (id) => askJson(`${DRIVES}/${encodeURIComponent(id)}/recall`, {method: 'POST'}),
  /** @param {string} id @returns {Promise<RecallState>} */
  cancelRecall: (id) => askJson(`${DRIVES}/${encodeURIComponent(id)}/recall`, {method: 'DELETE'}),
  file: of,
  /** @param {ExportRequest} options @returns {Promise<Export>} */
  begin: (options) => askJson(EXPORTS, {method: 'POST', body: JSON.stringify(options)}),
  /** @param {string} id @returns {Promise<Export>} */
  exported: (id) => askJson(`${EXPORTS}/${id}`),
  /** @param {string} id */
  cancel: (id) => ask(`${EXPORTS}/${id}`, {method: 'DELETE', keepalive: true}),
  /** @param {string} id */
  exportFile: (id) => `${EXPORTS}/${id}/file`,
  /** @returns {Promise<Datasets>} */
  datasets: () => askJson(DATASETS),
  /** @param {DatasetRequest} options @returns {Promise<Datasets>} */
  beginDataset: (options) => askJson(DATASETS, {method: 'POST', body: JSON.stringify(options)}),
  /** @param {string} name @param {'resume' | 'cancel' | 'remove'} verb @returns {Promise<Datasets>} */
  changeDataset: (name, verb) => askJson(`${DATASETS}/${encodeURIComponent(name)}/${verb}`, {method: 'POST'}),
  /** @param {string} name */
  datasetFile: (name) => `${DATASETS}/${encodeURIComponent(name)}/file`,
  /**
   * Sends the code in a header of our own, which no other page can send.
   * @param {string} code
   */
  unlock: (code) => ask('api/recordings/unlock', {method: 'POST', headers: {'X-Drive-Code': code}}),
};
