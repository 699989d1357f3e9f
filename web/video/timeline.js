/**
 * Where each access unit lies in the media, and which one is shown. Pure.
 *
 * A pause of the pictures is none of the media: the next one follows where the last one
 * ends, and is shown at once. Behind a gap the browser would refuse all up to a key frame
 * (MSE, coded frame processing: "need random access point") and had to be made to seek.
 */

/** Declared of every fragment; the next one ends it. */
export const DURATION_US = 100_000;
/** So many units can still be told by their place. */
const KNOWN = 90;
/** Media times come back as seconds in floating point. */
const ROUNDING_US = 1000;

export class Timeline {
  constructor() {
    /** @type {{startUs: number, captureUs: number}[]} */
    this.known = [];
  }

  /**
   * Where the next unit starts, us. A car that was started anew counts from elsewhere:
   * that is a pause, too.
   * @param {number} captureUs
   */
  place(captureUs) {
    const last = this.known.at(-1);
    const sinceUs = last ? captureUs - last.captureUs : 0;
    const stepUs = sinceUs > 0 && sinceUs < DURATION_US ? sinceUs : DURATION_US;
    const startUs = last ? last.startUs + stepUs : 0;
    this.known.push({startUs, captureUs});
    if (this.known.length > KNOWN) this.known.shift();
    return startUs;
  }

  /** Start of the newest unit. */
  get newestS() {
    return (this.known.at(-1)?.startUs ?? 0) / 1e6;
  }

  /**
   * When the unit that is shown at this media time was captured; null for a time that
   * is not ours: a source that went away may still report its last picture.
   * @param {number} mediaS
   */
  captureUs(mediaS) {
    const latestUs = mediaS * 1e6 + ROUNDING_US;
    if (latestUs - 2 * ROUNDING_US > this.newestS * 1e6) return null;
    const shown = this.known.filter((one) => one.startUs <= latestUs);
    return shown.at(-1)?.captureUs ?? null;
  }
}
