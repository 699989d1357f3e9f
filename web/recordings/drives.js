/** Drives, made of files that follow each other. Pure. */

/** @import {Drive, Recording} from './types.js' */

/** Files that are further apart than this belong to two drives. */
const PAUSE_S = 5;
/** So do files that overlap: between them somebody set the car's clock back. */
const OVERLAP_S = 1;

/**
 * The drives that these files make up, the newest first.
 * @param {readonly Recording[]} recordings @returns {Drive[]}
 */
export function drivesOf(recordings) {
  /** @type {Drive[]} */
  const drives = [];
  for (const one of [...recordings].sort((a, b) => a.start_ms - b.start_ms)) {
    const before = drives.filter((drive) => follows(drive, one));
    const last = before.find((drive) => recordingOf(drive.parts[0].name) ===
      recordingOf(one.name)) ?? before.at(-1);
    if (last) add(last, one, (one.start_ms - last.startMs) / 1000);
    else {
      const made = {startMs: one.start_ms, seconds: 0, bytes: 0, parts: [], state: one.state};
      add(made, one, 0);
      drives.push(made);
    }
  }
  return drives.reverse();
}

/** Does this file continue the drive? @param {Drive} drive @param {Recording} one */
function follows(drive, one) {
  const pauseS = (one.start_ms - drive.startMs) / 1000 - drive.seconds;
  return pauseS < PAUSE_S && pauseS > -OVERLAP_S;
}

/** The part of a file's name that all files of its recording share. @param {string} name */
const recordingOf = (name) => name.replace(/-\d+\.mcap(\.part)?$/, '');

/** @param {Drive} drive @param {Recording} one @param {number} startS */
function add(drive, one, startS) {
  drive.parts.push({...one, startS, endS: startS + one.seconds});
  drive.seconds = Math.max(drive.seconds, startS + one.seconds);
  drive.bytes += one.bytes;
  if (one.state === 'open' || drive.state === 'closed') drive.state = one.state;
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
 * Seconds of a line that two points stand for: see recordings/plots.py.
 * @param {Drive} drive
 */
export function bucketOf(drive) {
  const longestS = Math.max(...drive.parts.map(({seconds}) => seconds));
  return longestS / Math.floor(pointsOf(drive) / 2);
}

/** A file's name without the ending that it loses when it is closed. @param {string} name */
export const stem = (name) => name.replace(/\.part$/, '');

/** The file that the address names; a malformed one names none. @param {string} hash */
export function named(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return '';
  }
}

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
