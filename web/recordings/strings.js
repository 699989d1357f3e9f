/** Texts of the recordings page, from lang/. */

import {counted, dates, exact, listed, named, titled} from '../lang/forms.js';
import {LOCALE, t, fill, joined, number, said, unit} from '../lang/words.js';

/** @import {Copy} from './types.js' */

const SIZES = ['kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
const KILO = 1000;
const MINUTE_S = 60;
const CLOCK = /** @type {const} */ ({hour: '2-digit', minute: '2-digit'});
const DATE = /** @type {const} */ ({day: 'numeric', month: 'short', year: 'numeric'});
const shortDay = dates({day: 'numeric', month: 'short'});
/** @param {Intl.DateTimeFormatOptions} options */
const titleDate = (options) => {
  const format = dates(options);
  return (/** @type {number} */ ms) => format(ms).replace(/^\p{Ll}/u, (letter) => letter.toLocaleUpperCase(LOCALE));
};
const list = new Intl.ListFormat(LOCALE, {type: 'unit', style: 'narrow'});
const long = /** @type {const} */ ({unitDisplay: 'long'});

export const STRINGS = {
  pageTitle: (/** @type {string} */ car) => fill(t.recordings.pageTitle, {car}),
  unread: (/** @type {number} */ count) => counted(t.recordings.unread, count),
  metres: (/** @type {number} */ metres) => STRINGS.about(metres < KILO
    ? unit(metres, 'meter') : unit(metres / KILO, 'kilometer', 1)),
  cause: (/** @type {string} */ cause) => named(t.recordings.causes, cause) ?? cause,
  /** @param {number} count @param {boolean} more others were found, too */
  moments: (count, more) => more
    ? fill(t.recordings.momentsNewest, {count: number(count)}) : counted(t.recordings.momentsFound, count),
  /** Worst value of a moment, with its name. @param {string} name @param {string} value */
  worst: (name, value) => fill(named(t.recordings.momentsWorst, name) ?? value, {value}),
  /** @param {string} plot of all weeks */
  week: (plot) => named(t.recordings.weekPlots, plot) ?? plot,
  /** @param {Record<string, number>} stops */
  stops: (stops) => {
    const causes = Object.entries(stops);
    if (!causes.length) return '';
    const texts = causes.map(([cause, times]) =>
      `${times > 1 ? `${number(times)}× ` : ''}${STRINGS.cause(cause)}`);
    const count = causes.reduce((sum, [, times]) => sum + times, 0);
    return counted(t.recordings.stops, count, {causes: listed(texts, '、')});
  },
  /** Causes whose text in a drive contains this; "stop" matches all. @param {string} text */
  causes: (text) => Object.keys(t.recordings.causes).filter((cause) => [1, 2].some((times) =>
    STRINGS.stops({[cause]: times}).toLowerCase().includes(text.trim().toLowerCase()))),
  edit: (/** @type {string} */ name) => fill(t.recordings.edit, {name}),
  intoDataset: (/** @type {string} */ name) => fill(t.recordings.datasetsTick, {name}),
  /** Files removed and kept. @param {number} gone @param {string} size @param {number} stay */
  sure: (gone, size, stay) => joined(
    gone ? counted(t.recordings.goes, gone, {size}) : '',
    stay ? counted(t.recordings.stays, stay) : '',
  ),
  /** Of a base station. @param {string} size */
  sureTrash: (size) => fill(t.recordings.sureTrash, {size}),
  refused: (/** @type {string} */ why) => fill(t.recordings.refused, {why}),
  failed: (/** @type {string} */ why) => fill(t.recordings.failed, {why}),
  failedDrive: (/** @type {string} */ why) => fill(t.recordings.failedDrive, {why}),
  when: titleDate({weekday: 'short', ...DATE, ...CLOCK}),
  second: dates({...DATE, ...CLOCK, second: '2-digit'}),
  day: titleDate({weekday: 'long', ...DATE, month: 'long'}),
  time: dates(CLOCK),
  clock: dates({...CLOCK, second: '2-digit'}),
  /** Other places of a drive. @param {Copy[]} copies */
  copies: (copies) => copies.map(({place, verified_s: seconds, whole, tier}) => {
    const {station, stationPart, car, carPart, here, part, verified, archive} = t.recordings.copies;
    if (place === 'station') return whole ? station : stationPart;
    if (!whole && place === 'car') return carPart;
    const where = tier ? fill(archive, {place}) : place === 'car' ? car : place || here;
    if (!whole) return fill(part, {place: where});
    const day = shortDay(seconds * 1000).replaceAll(' ', '\u00a0');  // on one line
    return seconds ? fill(verified, {place: where, day}) : where;
  }).join(' · '),
  /** @param {number} seconds */
  length: (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  },
  /** "" for an instant. @param {number} seconds */
  duration: (seconds) => {
    if (seconds >= MINUTE_S) return STRINGS.length(seconds);
    return seconds ? unit(seconds, 'second', 1) : '';
  },
  /** A moment, as precise as the steps. @param {number} seconds @param {number} stepS */
  moment: (seconds, stepS) => {
    const digits = stepS >= 1 ? 0 : stepS >= 0.1 ? 1 : 2;
    const whole = Math.floor(Number(seconds.toFixed(digits)));
    // "0.25" without its zero
    const rest = digits ? number(Math.max(0, seconds - whole), digits).slice(1) : '';
    return STRINGS.length(whole) + rest;
  },
  /** @param {number} fromS @param {number} toS */
  stretch: (fromS, toS) => fill(t.recordings.stretch,
    {from: STRINGS.moment(fromS, 0.1), to: STRINGS.moment(toS, 0.1)}),
  /** @param {number} seconds */
  spoken: (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const minutes = Math.floor(whole / 60);
    const rest = unit(whole % 60, 'second', 0, long);
    return minutes ? list.format([unit(minutes, 'minute', 0, long), rest]) : rest;
  },
  /** @param {number} bytes */
  size: (bytes) => {
    if (bytes < KILO - 0.5) return unit(bytes, 'byte', 0, long);
    let power = 0;
    let value = bytes / KILO;
    while (value >= KILO - 0.5 && power < SIZES.length - 1) {
      value /= KILO;
      power += 1;
    }
    return unit(value, SIZES[power], value < 10 ? 1 : 0);
  },
  /** @param {number} count */
  marks: (count) => counted(t.recordings.countOfMarks, count),
  /** @param {number} count */
  files: (count) => counted(t.recordings.countOfFiles, count),
  /** @param {string} name */
  download: (name) => fill(t.recordings.download, {name}),
  openFoxglove: (/** @type {string} */ name) => fill(t.recordings.openFoxglove, {name}),
  /** @param {number} at @param {string} text */
  mark: (at, text) => `${STRINGS.length(at)} ${text || t.recordings.mark}`,
  /** @param {number} at @param {number} whole */
  at: (at, whole) => `${STRINGS.length(at)} / ${STRINGS.length(whole)}`,
  /** @param {number} at @param {number} whole */
  atSpoken: (at, whole) => fill(t.recordings.at, {at: STRINGS.spoken(at), whole: STRINGS.spoken(whole)}),
  /** @param {number} speed */
  speed: (speed) => `${exact(speed)}×`,
  /** @param {string} group */
  group: (group) => named(t.recordings.groups, group) ?? group,
  /** @param {string} reason */
  reason: (reason) => named(t.recordings.reasons, reason) ?? reason,
  /** @param {number | null} value @param {string} name of its unit */
  value: (value, name) => {
    if (value === null) return '–';
    const digits = name === 'ms' || name === '%' ? 0 : name === '/h' ? 1 : 2;
    return `${number(value, digits)}${name ? `\u00a0${name}` : ''}`;
  },
  about: (/** @type {string} */ value) => `≈\u00a0${value}`,
  /** @param {string} name @param {number} low @param {number} high @param {string} measure */
  span: (name, low, high, measure) => fill(t.recordings.span,
    {name, low: STRINGS.value(low, measure), high: STRINGS.value(high, measure)}),
  nothing: (/** @type {string} */ name) => fill(t.recordings.nothing, {name}),
  gap: (/** @type {number} */ at, /** @type {import('../lib/types.js').Text} */ words) =>
    titled(STRINGS.length(at), said(words)),
};
