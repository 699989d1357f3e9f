/** Plural forms, dates and times, as the page's language writes them, and further texts: for parts
 * loaded after the seat's first screen. */

import {LANGUAGE, LOCALE, fill, loadTexts, number, spaced} from './words.js';

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

/** Loads the texts of doctor's findings; English comes with each. */
export const loadFindings = async () => (LANGUAGE === 'en' ? undefined : loadTexts('findings').catch(() => {}));

/** A finding's heading or next step: a capital and a full stop; commands and names stay. @param {string} text */
export const asSentence = (text) => (/^(sudo|dmesg)\b|^\S+=\S*$/.test(text) ? text : text
  .replace(/^(?!fpvcar|system)\p{Ll}(?=[\p{L}’-]*([\s,:;]|$))/u, (letter) => letter.toLocaleUpperCase(LOCALE))
  .replace(/[\p{L}\p{N}%)）”»`’]$/u, /\p{Script=Han}/u.test(text) ? '$&。' : '$&.'));

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
