/** Drives out of files, lines out of series, and where a moment is in them. Pure. */

/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./types.js').Drive} Drive */

/** Files that are further apart than this belong to two drives. */
const PAUSE_S = 5;
/** And so do files at the same time: between them somebody set the car's clock back. */
const OVERLAP_S = 1;

/**
 * Files that follow each other are one drive; the newest drive first.
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

/** @param {Drive} drive @param {Recording} one */
function follows(drive, one) {
  const pauseS = (one.start_ms - drive.startMs) / 1000 - drive.seconds;
  return pauseS < PAUSE_S && pauseS > -OVERLAP_S;
}

/** What all files of a recording begin with. @param {string} name */
const recordingOf = (name) => name.replace(/-\d+\.mcap(\.part)?$/, '');

/** @param {Drive} drive @param {Recording} one @param {number} startS */
function add(drive, one, startS) {
  drive.parts.push({...one, startS, endS: startS + one.seconds});
  drive.seconds = Math.max(drive.seconds, startS + one.seconds);
  drive.bytes += one.bytes;
  if (one.state === 'open' || drive.state === 'closed') drive.state = one.state;
}

/** So many points of a line are more than a plot is wide. */
const POINTS = 1200;
/** The least and the greatest. */
const POINTS_LEAST = 2;

/** How many points of each line to ask of each part of a drive, however long. @param {Drive} drive */
export function pointsOf({parts}) {
  return Math.max(POINTS_LEAST, Math.ceil(POINTS / parts.length));
}

/** Of so long a line then has two points, s: see series.py. @param {Drive} drive */
export function stretchOf(drive) {
  const longestS = Math.max(...drive.parts.map(({seconds}) => seconds));
  return longestS / Math.floor(pointsOf(drive) / 2);
}

/** A file that is sealed loses an ending of its name. @param {string} name */
export const stem = (name) => name.replace(/\.part$/, '');

/** The file that an address names; a malformed one names none. @param {string} hash */
export function named(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return '';
  }
}

/** The part of that name. @param {Drive} drive @param {string} name */
export function partOf(drive, name) {
  return drive.parts.find((part) => stem(part.name) === stem(name));
}

/** Marks of all parts, s from the drive's start. @param {Drive} drive */
export function marksOf(drive) {
  return drive.parts.flatMap((part) => part.marks.map(({t, text}) => ({
    t: part.startS + t, text,
  })));
}

/**
 * Where in a rising list the last value stands that is not above `wanted`; -1 before all.
 * @param {readonly number[]} rising @param {number} wanted
 */
export function lastUpTo(rising, wanted) {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * What a line says at a moment: its last value, none before the first.
 * @param {{t: readonly number[], v: readonly (number | null)[]}} line @param {number} atS
 */
export function valueAt({t, v}, atS) {
  const index = lastUpTo(t, atS);
  return index < 0 ? null : v[index];
}

/** The least and the greatest value; null of nothing. @param {readonly (number | null)[]} values */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? {low, high} : null;
}

/**
 * An axis that holds these values, with round ends and room.
 * @param {{low: number, high: number}} held @param {boolean} fromZero
 */
export function axis({low, high}, fromZero) {
  const bottom = fromZero ? Math.min(0, low) : low;
  const step = roundStep(Math.max(high - bottom, 1e-3) / 2);
  const top = Math.ceil(high / step - 1e-9) * step;
  const floor = Math.floor(bottom / step + 1e-9) * step;
  return {low: floor, high: top > floor ? top : floor + step};
}

/** The next of 1, 2, 5 times a power of ten. @param {number} least */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const times of [1, 2, 5]) if (times * power >= least * (1 - 1e-9)) return times * power;
  return 10 * power;
}

/**
 * A line as an SVG path in a box of width x height; null breaks it.
 * @param {{t: readonly number[], v: readonly (number | null)[]}} line
 * @param {{seconds: number, low: number, high: number, width: number, height: number}} box
 */
export function linePath({t, v}, {seconds, low, high, width, height}) {
  let path = '';
  let pen = 'M';
  v.forEach((value, index) => {
    if (value === null) {
      pen = 'M';
      return;
    }
    const x = (t[index] / Math.max(seconds, 1e-9)) * width;
    const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
    path += `${pen}${round(x)} ${round(height - share * height)}`;
    // A point of its own would not be seen.
    if (pen === 'M') path += 'h.1';
    pen = 'L';
  });
  return path;
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;

/**
 * Lines of the same name in one: parts of a drive, one after the other.
 * @param {Map<string, import('./types.js').Series>} lines
 * @param {readonly import('./types.js').Series[]} more @param {number} startS of `more`
 * @param {number} stretchS less than two of these are between two points
 */
export function joinLines(lines, more, startS, stretchS) {
  for (const {group, name, unit, t, v} of more) {
    const key = `${group}/${name}`;
    const line = lines.get(key) ?? {group, name, unit, t: [], v: []};
    const lastS = line.t.at(-1);
    // Between two files nothing is known.
    const pauseS = Math.max(PAUSE_S / 5, 2 * stretchS);
    if (lastS !== undefined && t.length && startS + t[0] - lastS > pauseS) {
      line.t.push(lastS);
      line.v.push(null);
    }
    for (const [index, atS] of t.entries()) {
      line.t.push(startS + atS);
      line.v.push(v[index]);
    }
    lines.set(key, line);
  }
}
