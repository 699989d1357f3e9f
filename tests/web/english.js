/** The pages' words for tests, English, and a `fetch` that reads the files of lang/. */

import {readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

import {register} from '../../web/lang/words.js';

/** A file of texts. @param {string} language @param {string} part */
export const texts = (language, part) =>
  JSON.parse(readFileSync(new URL(`../../web/lang/${language}/${part}.json`, import.meta.url), 'utf8'));

for (const part of ['buttons', 'calibration', 'drawer', 'network', 'recordings', 'seat', 'start', 'trust']) {
  register(texts('en', part));
}
globalThis.fetch = async (/** @type {unknown} */ file) => new Response(readFileSync(fileURLToPath(String(file))));

/** A text of the car without a translation. @param {string} english @returns {import('../../web/lib/types.js').Text} */
export const textOf = (english) => ({key: 'no_such_key', english, values: {}});
