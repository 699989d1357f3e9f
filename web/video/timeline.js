/**
 * Maps capture times to media times and back, for Media Source Extensions. Pure.
 *
 * A pause of the camera is no gap in the media: the next unit begins where the last one
 * ends, and is shown at once. Behind a gap the browser refuses every unit up to a key frame
 * (MSE, coded frame processing: "need random access point") and has to be made to seek.
 */

/** Declared duration of each fragment; the next fragment ends it earlier. */
export const DURATION_US = 100_000;
/** How many units to remember. */
const REMEMBERED = 90;
/** Media times come back as seconds in floating point. */
const ROUNDING_US = 1000;

export class Timeline {
  constructor() {
    /** @type {{startUs: number, captureUs: number}[]} */
    this.known = [];
  }

  /**
   * Media time at which the next unit starts, us. A restarted car counts from a new
   * origin: treated as a pause, too.
   * @param {number} captureUs
   */
  place(captureUs) {
    const last = this.known.at(-1);
    const sinceUs = last ? captureUs - last.captureUs : 0;
    const stepUs = sinceUs > 0 && sinceUs < DURATION_US ? sinceUs : DURATION_US;
    const startUs = last ? last.startUs + stepUs : 0;
    this.known.push({startUs, captureUs});
    if (this.known.length > REMEMBERED) this.known.shift();
    return startUs;
  }

  /** Media time at which the newest unit starts. */
  get newestS() {
    return (this.known.at(-1)?.startUs ?? 0) / 1e6;
  }

  /**
   * Capture time of the unit that is shown at this media time; null for a time that is
   * not ours: a source that went away may still report its last picture.
   * @param {number} mediaS
   */
  captureUs(mediaS) {
    const latestUs = mediaS * 1e6 + ROUNDING_US;
    if (latestUs - 2 * ROUNDING_US > this.newestS * 1e6) return null;
    const shown = this.known.filter((entry) => entry.startUs <= latestUs);
    return shown.at(-1)?.captureUs ?? null;
  }
}
