/** The lines of a plot: values at a moment, axes, paths, and parts joined. Pure. */

/** @import {Series} from '../types.js' */

/** A line is broken where nothing is known for longer than this. */
const PAUSE_S = 1;

/**
 * Index of the last value that is not above `limit`; -1 if all are above.
 * @param {readonly number[]} rising @param {number} limit
 */
export function lastUpTo(rising, limit) {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * A line's value at a moment: the last one up to it, null before the first.
 * @param {{t: readonly number[], v: readonly (number | null)[]}} line @param {number} atS
 */
export function valueAt({t, v}, atS) {
  const index = lastUpTo(t, atS);
  return index < 0 ? null : v[index];
}

/**
 * A servo's angle at a moment: it keeps the last one, also across a gap; the first one before that.
 * @param {{t: readonly number[], v: readonly (number | null)[]}} line @param {number} atS
 */
export function angleAt({t, v}, atS) {
  for (let index = lastUpTo(t, atS); index >= 0; index -= 1) if (v[index] !== null) return v[index];
  return v.find((value) => value !== null) ?? null;
}

/**
 * The least and the greatest value; null without values.
 * @param {readonly (number | null)[]} values
 */
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
 * A line between two moments as an SVG path in a box of width x height; null breaks it.
 * @param {{t: readonly number[], v: readonly (number | null)[]}} line
 * @param {{fromS: number, toS: number, low: number, high: number, width: number,
 *   height: number}} box
 */
export function linePath({t, v}, {fromS, toS, low, high, width, height}) {
  let path = '';
  let pen = 'M';
  // From the point before the left edge to the one behind the right.
  for (let index = Math.max(0, lastUpTo(t, fromS)); index < t.length; index += 1) {
    const value = v[index];
    if (value === null) {
      pen = 'M';
      continue;
    }
    const x = ((t[index] - fromS) / Math.max(toS - fromS, 1e-9)) * width;
    const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
    path += `${pen}${round(x)} ${round(height - share * height)}`;
    // A lone point would not be seen.
    if (pen === 'M') path += 'h.1';
    pen = 'L';
    if (t[index] > toS) break;
  }
  return path;
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;

/**
 * Appends a part's lines to those of the same name.
 * @param {Map<string, Series>} lines
 * @param {readonly Series[]} more @param {number} startS of `more`
 * @param {number} bucketS seconds that two points stand for
 */
export function joinLines(lines, more, startS, bucketS) {
  for (const {group, name, unit, t, v} of more) {
    const key = `${group}/${name}`;
    const line = lines.get(key) ?? {group, name, unit, t: [], v: []};
    const lastS = line.t.at(-1);
    // Between two files nothing is known.
    const pauseS = Math.max(PAUSE_S, 2 * bucketS);
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
