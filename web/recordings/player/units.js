/**
 * Fetches the access units of a drive a span of time at once, and caches a few spans.
 *
 * Each span can be decoded by itself: the car puts in front of it the units that lead up
 * to it, from the key frame before.
 */

import {HEADER_BYTES, parseVideo} from '../../lib/wire.js';
import {lastUpTo} from '../plots/lines.js';

/** @import {Drive, Span, Unit} from '../types.js' */

/** Some 2 MB of video: here within a second over a slow link. */
export const SPAN_S = 8;
const SPANS_MAX = 6;
const AGAIN_MS = 1000;

/**
 * The units in an answer of the car, each behind a header as on /ws/video. Throws
 * WireError if the answer is cut.
 * @param {ArrayBuffer} body @param {number} startMs when the drive starts, UTC @returns {Unit[]}
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

export class UnitCache {
  /**
   * @param {Drive} drive
   * @param {{fetch: (name: string, fromS: number, seconds: number) => Promise<ArrayBuffer>,
   *   failed: (fault: string) => void, nowMs?: () => number}} parts
   *   `fetch`: `fromS` counts from the start of that file
   */
  constructor(drive, {fetch, failed, nowMs = () => performance.now()}) {
    this.drive = drive;
    this.fetch = fetch;
    this.failed = failed;
    this.nowMs = nowMs;
    this.starts = drive.parts.map((part) => part.startS);
    /** Spans by id, the least recently used first. @type {Map<string, Span>} */
    this.loaded = new Map();
    /** @type {Set<string>} */
    this.loading = new Set();
    this.againMs = -Infinity;
    this.closed = false;
  }

  /**
   * The span around a moment; if it is not loaded, requests it and returns null.
   * @param {number} timeS @returns {Span | null}
   */
  at(timeS) {
    const place = this.place(timeS);
    const span = this.loaded.get(place.id) ?? null;
    if (!span) void this.load(place);
    else {
      this.loaded.delete(place.id);
      this.loaded.set(place.id, span);
    }
    return span;
  }

  /** Asks for the span after this one, so that it is here in time. @param {Span} span */
  prefetch(span) {
    if (span.hiS >= this.drive.seconds) return;
    const place = this.place(span.hiS);
    if (!this.loaded.has(place.id)) void this.load(place);
  }

  /** Which span a moment is in. @param {number} timeS */
  place(timeS) {
    const index = Math.max(0, lastUpTo(this.starts, timeS));
    const part = this.drive.parts[index];
    const last = Math.max(0, Math.ceil(part.seconds / SPAN_S) - 1);
    const count = Math.max(0, Math.min(last, Math.floor((timeS - part.startS) / SPAN_S)));
    const loS = part.startS + count * SPAN_S;
    // The last span of a file reaches to the next file, or has no end.
    const nextS = this.starts[index + 1] ?? Infinity;
    const hiS = count === last ? nextS : loS + SPAN_S;
    return {id: `${part.name} ${count}`, part, loS, hiS};
  }

  /** @param {ReturnType<UnitCache['place']>} place */
  async load({id, part, loS, hiS}) {
    if (this.loading.has(id) || this.nowMs() < this.againMs) return;
    this.loading.add(id);
    const seconds = Math.min(hiS - loS, 2 * SPAN_S);
    try {
      const body = await this.fetch(part.name, loS - part.startS, seconds);
      const units = unitsOf(body, this.drive.startMs);
      if (!this.closed) this.store(id, {loS, hiS, units});
    } catch (fault) {
      this.againMs = this.nowMs() + AGAIN_MS;
      if (!this.closed) this.failed(fault instanceof Error ? fault.message : String(fault));
    } finally {
      this.loading.delete(id);
    }
  }

  /** @param {string} id @param {Span} span */
  store(id, span) {
    this.loaded.set(id, span);
    for (const old of this.loaded.keys()) {
      if (this.loaded.size <= SPANS_MAX) break;
      this.loaded.delete(old);
    }
  }

  close() {
    this.closed = true;
    this.loaded.clear();
  }
}
