/** Translations compared with English. Run as a program, it lists missing translations:
 * `make check` prints them as warnings. */

import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

import {LANGUAGES} from '../../../web/seat/drawer/app.js';

/** @typedef {{[name: string]: string | Messages}} Messages */

const ROOT = new URL('../../../web/', import.meta.url);
/** Parts of English. Another language has `SENT`, too. */
export const PARTS = readdirSync(new URL('lang/en/', ROOT)).map((name) => name.replace('.json', '')).sort();
/** Translations of the texts that car and station send in English. */
export const SENT = 'sentences';
const FORMS = ['zero', 'one', 'two', 'few', 'many', 'other'];
/** English texts of car and station, by tools/docs/page_texts.py. @type {Messages} */
const ENGLISH = {[SENT]: JSON.parse(readFileSync(new URL('sent.json', import.meta.url), 'utf8'))};
/** Texts of a part; none if a translation lacks its file. @param {string} language @param {string} part @returns {Messages} */
export function words(language, part) {
  const file = new URL(`lang/${language}/${part}.json`, ROOT);
  return language === 'en' && part === SENT ? ENGLISH : existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

/** Forms of a counted noun. @param {string | Messages} one @returns {one is Record<string, string>} */
export const isForms = (one) => typeof one === 'object' && 'other' in one && Object.keys(one).every((form) => FORMS.includes(form));
/**
 * Messages by their path, "causes.blind"; counted ones as their forms.
 * @param {Messages} all @returns {Map<string, string | Record<string, string>>}
 */
export const flat = (all, prefix = '') => new Map(Object.entries(all).flatMap(([name, one]) =>
  (typeof one === 'string' || isForms(one) ? [[prefix + name, one]] : [...flat(one, `${prefix}${name}.`)])));
/** @param {string} message */
const places = (message) => [...message.matchAll(/\{\w*\}?/g)].map(([place]) => place).sort();

/**
 * Texts without a translation, by path: the page shows them in English.
 * @param {Messages} english @param {Messages} other
 */
export function untranslated(english, other) {
  const known = flat(other);
  return [...flat(english).keys()].filter((name) => !known.has(name));
}

/**
 * Faults of a translation: unknown names, other values in a text, empty texts, English texts.
 * @param {Messages} english @param {Messages} other
 */
export function differences(english, other) {
  const expected = flat(english);
  return [...flat(other)].flatMap(([name, message]) => {
    const like = expected.get(name);
    if (like === undefined) return [`has ${name}, which English has not`];
    if (isForms(like) !== isForms(message)) return [`${name}: forms in one of them only`];
    const model = isForms(like) ? like.other : like;
    const all = typeof message === 'string' ? [message] : Object.values(message);
    return all.flatMap((text) => [
      places(text).join() === places(model).join() ? '' : `${name}: other values: ${text}`,
      text.trim() === text && text !== '' ? '' : `${name}: "${text}"`,
      text === model && text.length > 20 && english !== other ? `${name} is English: ${text}` : '',
    ]).filter(Boolean);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const part of [...PARTS, SENT]) {
    const english = words('en', part);
    for (const language of Object.keys(LANGUAGES)) {
      for (const name of untranslated(english, words(language, part))) {
        console.warn(`warning: web/lang/${language}/${part}.json has no ${name}: the page shows it in English`);
      }
    }
  }
}
