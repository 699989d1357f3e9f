/** A row of figures as an SVG path. Pure. */

/**
 * The path of `values` in a box; null breaks the line. The newest is at the right edge.
 * @param {readonly (number | null)[]} values @param {number} most how many fit
 * @param {{width: number, height: number, low?: number, high?: number}} box
 */
export function sparkline(values, most, {width, height, low = 0, high}) {
  const shown = values.slice(-most);
  const top = high ?? Math.max(low + 1, ...shown.map((value) => value ?? low));
  const step = width / Math.max(1, most - 1);
  let path = '';
  let pen = 'M';
  shown.forEach((value, index) => {
    if (value === null) {
      pen = 'M';
      return;
    }
    const x = width - (shown.length - 1 - index) * step;
    const share = Math.min(1, Math.max(0, (value - low) / (top - low)));
    path += `${pen}${round(x)} ${round(height - share * height)}`;
    pen = 'L';
  });
  return path;
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
