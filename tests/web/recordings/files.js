// Drives for tests of the recordings page, in the form of the car's list.

import {driveOf} from '../../../web/recordings/drives.js';

/** @import {FoundPart} from '../../../web/recordings/types.js' */

export const START_MS = 1_763_755_200_000;

/**
 * A file of a minute that belongs to its drive from end to end.
 * @param {string} name @param {number} startS @param {Partial<FoundPart>} [more]
 * @returns {FoundPart}
 */
export function file(name, startS, more = {}) {
  const seconds = more.seconds ?? 60;
  return {
    name, start_ms: START_MS + startS * 1000, seconds, bytes: 100, state: 'closed',
    lost: '', marks: [], pictures: 1800, from_s: 0, to_s: seconds, shared: false, ...more,
  };
}

/** The drive of these files, the oldest first. @param {FoundPart[]} parts */
export function driveOfFiles(...parts) {
  const [first, last] = [parts[0], parts[parts.length - 1]];
  const startMs = first.start_ms + first.from_s * 1000;
  return driveOf({
    id: `${first.name}@${first.from_s}`, start_ms: startMs, parked: false, drivers: ['Ann'],
    seconds: (last.start_ms - startMs) / 1000 + last.to_s, stops: {}, metres: 3, state: 'closed',
    bytes: 100 * parts.length, parts, title: '',
  });
}
