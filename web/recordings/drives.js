/** Drives: ranges of time over files, as the car lists them. Pure. */

import {lastUpTo} from './plots/lines.js';

/** @import {Copy, Drive, FoundDrive, FoundPart, Part, Table, DriveQuery} from './types.js' */

/**
 * A drive as the page uses it.
 * @param {FoundDrive} found @param {Copy[]} [copies] @returns {Drive}
 */
export function driveOf({start_ms: startMs, parts, ...rest}, copies = []) {
  const archive = copies.find(({tier}) => tier) ?? null;
  return {...rest, startMs, copies, archive, parts: parts.map((part) => placed(part, startMs))};
}

/** Is a drive's archive out of reach of the player? @param {Drive} drive */
export const isAway = ({archive}) => archive?.tier === 'bucket' || archive?.tier === 'away';

/** @param {FoundPart} part @param {number} startMs @returns {Part} */
function placed(part, startMs) {
  const startS = (part.start_ms - startMs) / 1000;
  return {...part, startS, endS: startS + part.seconds};
}

/** The measurements of a file within its drive. @param {Table} table @param {Part} part */
export function clipped(table, {from_s: fromS, to_s: toS}) {
  const within = (/** @type {{t: number}} */ {t}) => t >= fromS && t <= toS;
  const series = table.series.map(({t, v, ...line}) => {
    const kept = [...t.keys()].filter((index) => within({t: t[index]}));
    const before = line.group === 'angle' ? lastUpTo(t, fromS) : -1;
    // A servo is recorded while it turns, and keeps its angle from before the drive.
    if (before >= 0 && kept[0] !== before) kept.unshift(before);
    return {...line, t: kept.map((index) => Math.max(fromS, t[index])), v: kept.map((index) => v[index])};
  });
  const before = table.reasons.filter(({t}) => t <= fromS).at(-1);
  const reasons = table.reasons.filter(within);
  if (before && before.t < fromS) reasons.unshift({...before, t: fromS});
  return {...table, series, reasons, gaps: table.gaps.filter(within)};
}

/**
 * Query for the car's drives: see library/api/drives_api.py.
 * @param {DriveQuery} query @param {number} most @param {string[]} causes that `text` means
 * @param {number} [beforeMs] UTC
 */
export function queryOf({driver, parked, day, text}, most, causes, beforeMs) {
  const query = new URLSearchParams({most: String(most)});
  if (beforeMs !== undefined) query.set('before', String(beforeMs));
  query.set('wheel', parked ? 'parked' : 'driven');
  if (driver && !parked) query.set('driver', driver);
  if (day) {
    const [year, month, date] = day.split('-').map(Number);
    // A day may have 23 or 25 hours; times start in 1970.
    const ms = (/** @type {number} */ of) => Math.max(0, new Date(year, month - 1, of).getTime());
    query.set('since', String(ms(date)));
    query.set('until', String(ms(date + 1)));
  }
  if (text.trim()) {
    query.set('text', text.trim());
    for (const cause of causes) query.append('cause', cause);
  }
  return query;
}

/** More points of a line than a plot is wide. */
const POINTS = 1200;
/** A bucket's least and greatest value. */
const POINTS_LEAST = 2;

/**
 * How many points of each line to ask for in each part, however long the drive.
 * @param {Drive} drive
 */
export function pointsOf({parts}) {
  return Math.max(POINTS_LEAST, Math.ceil(POINTS / parts.length));
}

/**
 * Seconds of a line that two points stand for: see recordings/export/plots.py.
 * @param {Drive} drive
 */
export function bucketOf(drive) {
  const longestS = Math.max(...drive.parts.map(({seconds}) => seconds));
  return longestS / Math.floor(pointsOf(drive) / 2);
}

/**
 * The car that recorded a drive, by its files' names; '' where they do not say.
 * @param {Drive} drive
 */
export function carOf({parts}) {
  return /^([A-Za-z0-9-]{1,41})-\d{8}T\d{6}Z-\d{4,8}\.mcap/.exec(parts[0].name)?.[1] ?? '';
}

/** A file's name without the ending that it loses when it is closed. @param {string} name */
export const stem = (name) => name.replace(/\.part$/, '');

/** The drive or file that the address names; '' if malformed. @param {string} hash */
export function named(hash) {
  try {
    return decodeURIComponent(hash.slice(1).split('&')[0]);
  } catch {
    return '';
  }
}

/** Address of a moment in a drive, s from its start. @param {string} id @param {number} atS */
export const addressOf = (id, atS) => `#${encodeURIComponent(id)}&at=${Math.max(0, atS).toFixed(1)}`;

/** The moment in an address; null without one. @param {string} hash */
export function momentIn(hash) {
  const [, atS] = /&at=(\d+(?:\.\d+)?)$/.exec(hash) ?? [];
  return atS === undefined ? null : Number(atS);
}

/**
 * The drive that an address names, by its id or one of its files.
 * @param {readonly Drive[]} drives @param {string} name
 */
export function driveNamed(drives, name) {
  return drives.find(({id}) => id === name) ?? drives.find((drive) => partOf(drive, name)) ?? null;
}

/** Can episodes be made of a drive? Pure. @param {Drive} drive */
export const isUsable = (drive) => !drive.parked && drive.state !== 'open' && !isAway(drive) &&
  drive.parts.some(({pictures}) => pictures > 0);

/** The part of a drive that this file is. @param {Drive} drive @param {string} name */
export function partOf(drive, name) {
  return drive.parts.find((part) => stem(part.name) === stem(name));
}

/** Marks of all parts, s from the drive's start. @param {Drive} drive */
export function marksOf(drive) {
  return drive.parts.flatMap((part) => part.marks.map(({t, text}) => ({
    t: part.startS + t, text,
  })));
}
