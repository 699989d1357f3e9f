/**
 * The pictures of a drive that are here: fetched a stretch at a time, a few kept.
 *
 * Each stretch can be decoded by itself: the car puts in front of it what leads up to
 * it, from the key frame before.
 */

import {HEADER_BYTES, parseVideo} from '../lib/wire.js';
import {lastUpTo} from './shape.js';

/** @typedef {import('./types.js').Drive} Drive */
/** @typedef {import('./types.js').Stretch} Stretch */
/** @typedef {import('./types.js').Unit} Unit */

/** Some 2 MB of video: here within a second over a slow link. */
export const STRETCH_S = 8;
const KEPT = 6;
const AGAIN_MS = 1000;

/**
 * The units of an answer of the car, each behind the header of /ws/video. Throws
 * WireError where it is cut.
 * @param {ArrayBuffer} body @param {number} startMs of the drive, UTC @returns {Unit[]}
 */
export function unitsOf(body, startMs) {
  const view = new DataView(body);
  const units = [];
  for (let at = 0; at < body.byteLength;) {
    const cut = at + HEADER_BYTES > body.byteLength;
    const end = cut ? body.byteLength : at + HEADER_BYTES + view.getUint32(at + 16, true);
    const {key, captureUs, unit} = parseVideo(body.slice(at, end));
    units.push({timeS: (captureUs - startMs * 1000) / 1e6, key, unit});
    at = end;
  }
  return units;
}

export class Reel {
  /**
   * @param {Drive} drive
   * @param {{fetch: (name: string, fromS: number, seconds: number) => Promise<ArrayBuffer>,
   *   failed: (fault: string) => void, nowMs?: () => number}} parts
   *   `fetch`: seconds from the start of that file
   */
  constructor(drive, {fetch, failed, nowMs = () => performance.now()}) {
    this.drive = drive;
    this.fetch = fetch;
    this.failed = failed;
    this.nowMs = nowMs;
    this.starts = drive.parts.map((part) => part.startS);
    /** The least recently used first. @type {Map<string, Stretch>} */
    this.here = new Map();
    /** @type {Set<string>} */
    this.coming = new Set();
    this.againMs = -Infinity;
    this.closed = false;
  }

  /**
   * The stretch of that moment; null while it is not here, and then it is asked for.
   * @param {number} timeS @returns {Stretch | null}
   */
  at(timeS) {
    const place = this.place(timeS);
    const found = this.here.get(place.id) ?? null;
    if (!found) void this.bring(place);
    else {
      this.here.delete(place.id);
      this.here.set(place.id, found);
    }
    return found;
  }

  /** Asks for what follows `stretch`, so that it is here in time. @param {Stretch} stretch */
  ahead(stretch) {
    if (stretch.hiS >= this.drive.seconds) return;
    const place = this.place(stretch.hiS);
    if (!this.here.has(place.id)) void this.bring(place);
  }

  /** @param {number} timeS */
  place(timeS) {
    const index = Math.max(0, lastUpTo(this.starts, timeS));
    const part = this.drive.parts[index];
    const last = Math.max(0, Math.ceil(part.seconds / STRETCH_S) - 1);
    const count = Math.max(0, Math.min(last, Math.floor((timeS - part.startS) / STRETCH_S)));
    const loS = part.startS + count * STRETCH_S;
    // The last stretch of a file reaches to the next file, or for ever.
    const nextS = this.starts[index + 1] ?? Infinity;
    const hiS = count === last ? nextS : loS + STRETCH_S;
    return {id: `${part.name} ${count}`, part, loS, hiS};
  }

  /** @param {ReturnType<Reel['place']>} place */
  async bring({id, part, loS, hiS}) {
    if (this.coming.has(id) || this.nowMs() < this.againMs) return;
    this.coming.add(id);
    const seconds = Math.min(hiS - loS, 2 * STRETCH_S);
    try {
      const body = await this.fetch(part.name, loS - part.startS, seconds);
      const units = unitsOf(body, this.drive.startMs);
      if (!this.closed) this.keep(id, {loS, hiS, units});
    } catch (fault) {
      this.againMs = this.nowMs() + AGAIN_MS;
      if (!this.closed) this.failed(fault instanceof Error ? fault.message : String(fault));
    } finally {
      this.coming.delete(id);
    }
  }

  /** @param {string} id @param {Stretch} stretch */
  keep(id, stretch) {
    this.here.set(id, stretch);
    for (const old of this.here.keys()) {
      if (this.here.size <= KEPT) break;
      this.here.delete(old);
    }
  }

  close() {
    this.closed = true;
    this.here.clear();
  }
}
