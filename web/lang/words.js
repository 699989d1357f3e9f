/**
 * Texts of the page in its language, and numbers and units in its format.
 *
 *   boot.js chooses the language, reads lang/en/seat.json, lang/de/seat.json -> seat/main.js
 *   seat/drawer/drawer.js: loadTexts -> lang/en/drawer.json, lang/de/drawer.json
 *
 * English comes first: a text without a translation is shown in English.
 */

/** @import {Text} from './types.js' */

/** Every text by its name; {n} and the like stand for values. */
export const t = /** @type {import('./types.js').Words} */ ({});

/** "en", "de", ... */
export const LANGUAGE = globalThis.document?.documentElement.lang || 'en';
/** The same as this browser has it, say "de-CH": numbers differ. */
export const LOCALE = globalThis.navigator?.languages?.find((tag) => tag.split('-')[0] === LANGUAGE) ?? LANGUAGE;

/** Adds the texts of a part, over the English ones. @param {object} texts */
export const register = (texts) => merge(t, texts);

/** @param {Record<string, any>} into @param {Record<string, any>} texts */
function merge(into, texts) {
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string') into[name] = unbroken(text);
    else merge(into[name] = {...into[name]}, text);
  }
}

/**
 * A text with no line break before dots, a unit, French colons, semicolons and marks, and within
 * French quotes. @param {string} text
 */
const unbroken = (text) => text.replace(/ ([…:;!?»])/g, '\u00a0$1').replace(/« /g, '«\u00a0')
  .replace(/([\d}]) (?=(k?[mVAW]|m?s|cm|h|°C|dBm|G?Hz|[kMG]i?[Bto]|%)(?!\p{L}))/gu, '$1\u00a0');

for (const words of /** @type {{words?: object[]}} */ (globalThis).words ?? []) register(words);

/** A translation may lack a file. @param {string} language @param {string} part */
async function load(language, part) {
  const file = await fetch(new URL(`${language}/${part}.json`, import.meta.url));
  if (file.status === 404 && language !== 'en') return;
  if (!file.ok) throw new TypeError(`${file.url}: ${file.status}`);
  register(await file.json());
}

/** Loads the texts of a part that is not on the first screen. Throws TypeError. @param {string} part */
export async function loadTexts(part) {
  await load('en', part);
  if (LANGUAGE !== 'en') await load(LANGUAGE, part);
}

/**
 * A message with its values.
 * @param {string} message @param {Record<string, string | number>} values
 */
export const fill = (message, values) =>
  message.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

/** @type {Promise<unknown> | undefined} */
let loading;
export const loadSaid = () =>
  loading ??= LANGUAGE === 'en' ? Promise.resolve() : load(LANGUAGE, 'sentences').catch(() => {});

/**
 * A text of the car or station; '' for none, and for a state that is no fault ('ok'). English until
 * the translation has loaded.
 * @param {Text | 'ok' | 'none' | null | undefined} text @returns {string}
 */
export function said(text) {
  if (!text || typeof text === 'string') return '';
  void loadSaid();
  return filled(t.sentences?.[text.key] ?? text.english, text.values);
}

/** The same of a template. @param {string} template @param {Text['values']} [values] */
export const filled = (template, values = {}) => template.replace(/\{(\w+)\}/g, (place, name) => {
  const value = values[name] ?? place;
  if (typeof value === 'object') return said(value);
  const digits = /^-?\d+\.(\d+)$/.exec(value)?.[1].length;
  return digits ? number(+value, digits) : value;
});

/**
 * Sentences in a row: a full-width full stop has no space behind it.
 * @param {...string} sentences empty ones are left out
 */
export const joined = (...sentences) =>
  sentences.filter(Boolean).join(' ').replace(/([。！？]) /g, '$1');

/** Cached: making one costs a hundred times a use. @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** @param {number} value @param {number} digits after the point @param {Intl.NumberFormatOptions} [more] */
function format(value, digits, more = {}) {
  const key = `${digits} ${more.style} ${more.unit} ${more.unitDisplay}`;
  let formatter = formats.get(key);
  if (!formatter) {
    formatter = new Intl.NumberFormat(LOCALE, {
      minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false, ...more,
    });
    formats.set(key, formatter);
  }
  return spaced(formatter.format(value));
}

/** Chinese with a space between a number and its unit, as in the texts. @param {string} text */
export const spaced = (text) => (LANGUAGE === 'zh' ? text.replace(/(\d)(\p{Script=Han})/gu, '$1\u00a0$2') : text);

/** @param {number} value @param {number} [digits] after the point */
export const number = (value, digits = 0) => format(value, digits);
/** @param {number} share 1 is all @param {number} [digits] */
export const percent = (share, digits = 0) => format(share, digits, {style: 'percent'});
/** @param {number} value @param {string} name as ECMA-402 has it, say "meter" @param {number} [digits] @param {Intl.NumberFormatOptions} [more] */
export const unit = (value, name, digits = 0, more = {}) =>
  format(value, digits, {style: 'unit', unit: name, ...more}).replace(' ', '\u00a0');
