/** Plural forms, dates and times, as the page's language writes them, and what the car sends by
 * a key: for parts loaded after the seat's first screen. */

import {LANGUAGE, LOCALE, fill, loadTexts, number, spaced, t} from './words.js';

/** @import {Forms} from './types.js' */

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/**
 * The form for this count.
 * @param {Forms} forms @param {number} count @param {Record<string, string>} [values]
 */
export const counted = (forms, count, values = {}) =>
  fill(forms[new Intl.PluralRules(LANGUAGE).select(count)] ?? forms.other, {...values, count: number(count)});

/** A number with the digits that it has. @param {number} value */
export const exact = (value) => number(value, String(value).split('.')[1]?.length);

/** Items in a row, with the language's comma. @param {string[]} items @param {string} chinese '、' between words */
export const listed = (items, chinese = '，') => items.filter(Boolean).join(LANGUAGE === 'zh' ? chinese : ', ');

const [COLON, SEMICOLON] = LANGUAGE === 'zh' ? ['：', '；'] : LANGUAGE === 'fr' ? ['\u00a0: ', '\u00a0; '] : [': ', '; '];
/** Clauses in a row. @param {string[]} items */
export const clauses = (items) => items.join(SEMICOLON);
/** A name and its text. @param {string} name @param {string} text */
export const titled = (name, text) => name + COLON + text;

/** The text that the car names. @param {object} texts @param {string} name */
export const named = (texts, name) => /** @type {Record<string, string | undefined>} */ (texts)[name];

/** Decimals as the language writes them, and sentences. @param {Record<string, string>} values */
const local = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) =>
  [name, /^-?\d+\.\d+$/.test(value) ? exact(Number(value)) : isSentence(value) ? sentenceOf(value) || value : value]));

/** Loads what the car sends by a key; English comes with the key. @param {'findings' | 'refusals' | 'sentences'} part */
export const loadSent = async (part) => (LANGUAGE === 'en' ? undefined : loadTexts(part).catch(() => {}));

/**
 * A sentence of the car or station: its translation, else the English one.
 * @param {object | undefined} texts @param {string} key
 * @param {Record<string, string>} values @param {string} english
 */
export function translated(texts, key, values, english) {
  const text = LANGUAGE !== 'en' && named(texts ?? {}, key);
  return text ? fill(text, local(values)) : english;
}

/** The text of a refused request, by its header: see pi/fpvcar/wire/refusals.py. @param {Response} answer */
export async function refusalText(answer) {
  const text = (await answer.text()).trim();
  const {status} = answer;
  const bare = /^(\d{3}: .*)?$/.test(text);  // from beyond the car's program, or a path that it has not
  const english = bare ? `error ${status}` : text;
  const sent = answer.headers.get('X-Refusal') ?? (bare ? `key=status&status=${status}` : '');
  const {key, ...values} = Object.fromEntries(new URLSearchParams(sent));
  if (key) await loadSent('refusals');
  if (key && (!named(t.refusals ?? {}, key) || Object.values(values).some(isSentence))) await loadSent('sentences');
  return translated({...t.refusals, ...t.sentences}, key, values, english);
}

/** A finding's heading or next step: a capital and a full stop; commands and names stay. @param {string} text */
export const asSentence = (text) => (/^(sudo|dmesg)\b|^\S+=\S*$/.test(text) ? text : text
  .replace(/^(?!fpvcar|system)\p{Ll}(?=[\p{L}’-]*([\s,:;]|$))/u, (letter) => letter.toLocaleUpperCase(LOCALE))
  .replace(/[\p{L}\p{N}%)）”»`’]$/u, /\p{Script=Han}/u.test(text) ? '$&。' : '$&.'));

/** A value that is a sentence of its own. @param {string} value */
const isSentence = (value) => value.startsWith('key=');

/**
 * The sentence of a query "key=...&value=..."; '' without a translation.
 * @param {string} query @returns {string}
 */
function sentenceOf(query) {
  const {key, ...values} = Object.fromEntries(new URLSearchParams(query));
  const text = named(t.sentences ?? {}, key);
  return text ? fill(text, local(values)) : '';
}

/**
 * A message of the car, or of a station, in the page's language: `sentences` has key and values of
 * its English texts. See pi/fpvcar/runtime/sentences.py.
 * @template T @param {T} message @returns {T}
 */
export function localised(message) {
  const {sentences = {}} = /** @type {{sentences?: Record<string, string>}} */ (message);
  if (LANGUAGE === 'en' || !Object.keys(sentences).length) return message;
  const texts = new Map(Object.entries(sentences).map(([english, query]) => [english, sentenceOf(query) || english]));
  return replaced(message, texts);
}

/** @template T @param {T} value @param {Map<string, string>} texts @returns {T} */
function replaced(value, texts) {
  /** @type {any} */
  const any = value;
  if (typeof any === 'string') return /** @type {any} */ (texts.get(any) ?? any);
  if (Array.isArray(any)) return /** @type {any} */ (any.map((item) => replaced(item, texts)));
  if (typeof any !== 'object' || any === null) return value;
  return /** @type {any} */ (Object.fromEntries(Object.entries(any).map(([name, item]) => [name, replaced(item, texts)])));
}

/** The same, with its texts loaded. @template T @param {T} message */
export async function withTexts(message) {
  const {sentences = {}} = /** @type {{sentences?: object}} */ (message);
  if (Object.keys(sentences).length) await loadSent('sentences');
  return localised(message);
}

/** The reason of a closed socket: its second line has key and values. @param {string} reason */
export async function closeText(reason) {
  const [text, query] = reason.split('\n');
  return (await withTexts({text, sentences: query ? {[text]: query} : {}})).text;
}

/** Like "3 minutes ago", in one unit. @param {number} seconds */
export function ago(seconds) {
  const format = new Intl.RelativeTimeFormat(LOCALE);
  /** @type {[number, Intl.RelativeTimeFormatUnit]} */
  const [length, unit] = seconds < MINUTE_S ? [1, 'second'] : seconds < HOUR_S ? [MINUTE_S, 'minute']
    : seconds < DAY_S ? [HOUR_S, 'hour'] : [DAY_S, 'day'];
  return spaced(format.format(-Math.round(seconds / length), unit));
}

/** @param {Intl.DateTimeFormatOptions} options @returns {(ms: number) => string} of a time, UTC */
export function dates(options) {
  const format = new Intl.DateTimeFormat(LOCALE, options);
  return (ms) => format.format(new Date(ms));
}
