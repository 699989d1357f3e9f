/**
 * Merges the pictures of two connections, either of which may stall: in order, without
 * duplicates. Pure.
 *
 *   /ws/video  --+
 *                +--> Merge.take -> units in order
 *   /ws/copies --+
 *
 * A unit needs the one before it: it is held until that comes by the other connection. Each
 * connection keeps the order, so a unit that both are past never comes.
 */

/**
 * Units held of 1 s. The car sends a unit by the other connection if this one stands still,
 * so that more are held only where a key frame has to come.
 */
const HELD_MAX = 30;
const SEQUENCE_AT = 4;
const [FLAGS_AT, FLAG_KEY] = [2, 1];
const HEADER_BYTES = 20;

export class Merge {
  constructor() {
    /** Does the second connection carry anything? */
    this.both = false;
    /** The last unit passed on. @type {number | null} */
    this.newest = null;
    /** The last unit of each connection. @type {(number | null)[]} */
    this.last = [null, null];
    /** @type {Map<number, ArrayBuffer>} */
    this.held = new Map();
  }

  /**
   * Takes a frame of one of the connections; returns those to be shown now. One that does
   * not follow its predecessor is among them if that comes no more.
   * @param {ArrayBuffer} frame @param {0 | 1} way
   */
  take(frame, way) {
    if (frame.byteLength < HEADER_BYTES) return [frame]; // it is refused elsewhere
    const view = new DataView(frame);
    const sequence = view.getUint32(SEQUENCE_AT, true);
    const key = (view.getUint8(FLAGS_AT) & FLAG_KEY) !== 0;
    const {newest} = this;
    this.last[way] = sequence;
    if (newest !== null && ahead(sequence, newest) <= 0) return [];
    this.held.set(sequence, frame);
    if (newest === null || key) return this.pass(sequence);
    const next = (newest + 1) >>> 0;
    if (this.held.has(next)) return this.pass(next);
    return this.comesNoMore(next) ? this.pass(this.oldest(newest)) : [];
  }

  /** Passes a unit on that is held, and those that follow it; forgets older ones. @param {number} first */
  pass(first) {
    const frames = [];
    let sequence = first;
    for (let frame = this.held.get(first); frame; frame = this.held.get(sequence)) {
      frames.push(frame);
      this.newest = sequence;
      sequence = (sequence + 1) >>> 0;
    }
    for (const old of this.held.keys()) {
      if (ahead(old, sequence) < 0) this.held.delete(old);
    }
    return frames;
  }

  /** @param {number} sequence */
  comesNoMore(sequence) {
    const ways = this.both ? this.last : [this.last[0]];
    return this.held.size > HELD_MAX ||
      ways.every((last) => last !== null && ahead(last, sequence) > 0);
  }

  /** The oldest unit held. @param {number} newest */
  oldest(newest) {
    return [...this.held.keys()].reduce(
      (least, candidate) => (ahead(candidate, newest) < ahead(least, newest) ? candidate : least));
  }
}

/** How far one number is ahead of another; they wrap. @param {number} a @param {number} b */
const ahead = (a, b) => (a - b) | 0;
