/** A picture as a few cells of brightness; pi/fpvcar/hil/led_detector.py counts them alike. Pure. */

export const COLUMNS = 16;
export const ROWS = 12;

/**
 * The brightness of each pixel, 0 to 255 (Rec. 601), of RGBA bytes.
 * @param {Uint8ClampedArray} rgba
 */
export function brightness(rgba) {
  const cells = [];
  for (let at = 0; at < rgba.length; at += 4) {
    cells.push(Math.round(0.299 * rgba[at] + 0.587 * rgba[at + 1] + 0.114 * rgba[at + 2]));
  }
  return cells;
}
