/**
 * Replaces a decoder that holds pictures until later units arrive. Loads after the first screen.
 *
 * Some hardware decoders hold up to a whole GOP (w3c/webcodecs#528, #899), and decodeQueueSize
 * does not count these units. The browser's choice is replaced by a software decoder, and a
 * software decoder that holds pictures too by the browser's choice, each at the next key frame.
 */

/** H.264 without B-frames keeps at most so many units in the decoder. */
const HELD_MOST = 2;
const HELD_MS = 500;
/** A unit counts as at most this, as the camera may pause. */
const UNIT_MOST_MS = 150;

/** Detects a decoder that holds pictures. Pure: one per decoder. */
export class HeldPictures {
  constructor() {
    /** Time stamps of the units whose pictures have not come out. @type {number[]} */
    this.unitsUs = [];
    this.heldMs = 0;
    this.fedMs = -Infinity;
  }

  /**
   * A unit goes in. True if pictures were held for HELD_MS of video. A decoder with units
   * in its queue is slow and holds none.
   * @param {number} captureUs @param {number} queued @param {number} nowMs
   */
  fed(captureUs, queued, nowMs) {
    const holds = queued === 0 && this.unitsUs.length > HELD_MOST;
    this.heldMs = holds ? this.heldMs + Math.min(nowMs - this.fedMs, UNIT_MOST_MS) : 0;
    this.fedMs = nowMs;
    this.unitsUs.push(captureUs);
    return this.heldMs > HELD_MS;
  }

  /** A picture came out. Earlier units without one were damaged. @param {number} captureUs */
  pictured(captureUs) {
    this.unitsUs.splice(0, this.unitsUs.indexOf(captureUs) + 1);
  }
}

export class HeldRemedy {
  /** @param {Pick<import('./video.js').Video, 'warn' | 'askKey'>} video */
  constructor(video) {
    this.video = video;
    this.pictures = new HeldPictures();
    /** @type {VideoDecoder | null} */
    this.decoder = null;
  }

  /**
   * A unit goes into the path's decoder.
   * @param {import('./webcodecs.js').WebCodecsPath} path
   * @param {import('../lib/types.js').Decoding} state @param {number} captureUs
   * @param {number} nowMs
   */
  fed(path, state, captureUs, nowMs) {
    const {decoder, software} = state;
    if (this.decoder !== decoder) {
      this.decoder = decoder;
      this.pictures = new HeldPictures();
    }
    if (!this.pictures.fed(captureUs, decoder.decodeQueueSize, nowMs)) return;
    // Once for a format: if both decoders hold pictures, the browser's choice stays.
    if (path.choice(state) !== (software ? 'software' : '')) return;
    path.choose(state, software ? 'browser' : 'software');
    this.video.warn(software
      ? 'software decoder holds pictures too: back to the browser\'s choice'
      : 'decoder holds pictures: software decodes from now on');
    this.video.askKey();
  }

  /** @param {number} captureUs */
  pictured(captureUs) {
    this.pictures.pictured(captureUs);
  }
}
