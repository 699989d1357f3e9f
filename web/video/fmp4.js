/**
 * Access units as fragmented MP4, one fragment each, for Media Source Extensions. Pure.
 * ISO/IEC 14496-12 (boxes) and 14496-15 (avcC, length-prefixed units).
 *
 *   init segment   ftyp moov(mvhd trak(tkhd mdia(mdhd hdlr minf(vmhd dinf stbl))) mvex)
 *   each frame     moof(mfhd traf(tfhd tfdt trun)) mdat
 */

import {NAL, nalType, splitNals} from './h264.js';

/** Ticks a second of the track. */
export const TIMESCALE = 1_000_000;

/** @param {number} value */
const u16 = (value) => [value >> 8 & 255, value & 255];
/** @param {number} value */
const u32 = (value) => [value >>> 24, value >> 16 & 255, value >> 8 & 255, value & 255];
/** @param {number} value */
const u64 = (value) => [...u32(Math.floor(value / 2 ** 32)), ...u32(value % 2 ** 32)];
/** @param {number} count */
const zeros = (count) => /** @type {number[]} */ (new Array(count).fill(0));
/** @param {string} text */
const ascii = (text) => [...text].map((letter) => letter.charCodeAt(0));
/** The identity matrix of tkhd and mvhd, fixed point 16.16. */
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap(u32);

/**
 * @param {string} type @param {...ArrayLike<number>} parts
 * @returns {Uint8Array<ArrayBuffer>}
 */
function box(type, ...parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 8);
  const bytes = new Uint8Array(size);
  bytes.set([...u32(size), ...ascii(type)]);
  let at = 8;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** @param {string} type @param {number} flags @param {...ArrayLike<number>} parts */
const fullBox = (type, flags, ...parts) => box(type, u32(flags), ...parts);

/**
 * ftyp and moov for one H.264 track.
 * @param {{sps: Uint8Array, pps: Uint8Array, width: number, height: number}} key
 */
export function initSegment({sps, pps, width, height}) {
  const avcC = box('avcC', [1, sps[1], sps[2], sps[3], 0xff, 0xe1],
    u16(sps.length), sps, [1], u16(pps.length), pps);
  const avc1 = box('avc1', zeros(6), u16(1), zeros(16), u16(width), u16(height),
    u32(0x480000), u32(0x480000), zeros(4), u16(1), zeros(32), u16(24), u16(0xffff),
    avcC);
  const stbl = box('stbl', fullBox('stsd', 0, u32(1), avc1), fullBox('stts', 0, u32(0)),
    fullBox('stsc', 0, u32(0)), fullBox('stsz', 0, u32(0), u32(0)),
    fullBox('stco', 0, u32(0)));
  const dinf = box('dinf', fullBox('dref', 0, u32(1), fullBox('url ', 1)));
  const minf = box('minf', fullBox('vmhd', 1, zeros(8)), dinf, stbl);
  const hdlr = fullBox('hdlr', 0, zeros(4), ascii('vide'), zeros(12), ascii('car\0'));
  const mdhd = fullBox('mdhd', 0, zeros(8), u32(TIMESCALE), zeros(4), u16(0x55c4), zeros(2));
  const tkhd = fullBox('tkhd', 3, zeros(8), u32(1), zeros(4), zeros(4), zeros(8),
    zeros(8), MATRIX, u32(width * 65536), u32(height * 65536));
  const mvhd = fullBox('mvhd', 0, zeros(8), u32(TIMESCALE), zeros(4), u32(0x10000),
    u16(0x100), zeros(10), MATRIX, zeros(24), u32(2));
  const trex = fullBox('trex', 0, u32(1), u32(1), zeros(12));
  return joined(
    box('ftyp', ascii('iso5'), u32(512), ascii('iso5iso6avc1mp41')),
    box('moov', mvhd, box('trak', tkhd, box('mdia', mdhd, hdlr, minf)), box('mvex', trex)),
  );
}

/**
 * One access unit as a fragment of its own.
 * @param {{unit: Uint8Array, key: boolean}} frame @param {number} sequence from 1
 * @param {number} timeUs decode time in the track @param {number} durationUs
 */
export function fragment({unit, key}, sequence, timeUs, durationUs) {
  const sample = toLengthPrefixed(unit);
  // sample_depends_on 2: on nothing; 1 and non-sync: on others. 14496-12 8.8.3.1.
  const flags = key ? 0x02000000 : 0x01010000;
  // trun flags: data offset, then duration, size and flags of each sample.
  /** @param {number} offset */
  const moof = (offset) => box('moof', fullBox('mfhd', 0, u32(sequence)),
    box('traf', fullBox('tfhd', 0x020000, u32(1)),
      box('tfdt', u32(0x01000000), u64(timeUs)),
      fullBox('trun', 0x000701, u32(1), u32(offset), u32(durationUs),
        u32(sample.length), u32(flags))));
  return joined(moof(moof(0).length + 8), box('mdat', sample));
}

/** Annex B to 4-byte lengths, without access unit delimiters. @param {Uint8Array} unit */
export function toLengthPrefixed(unit) {
  const nals = splitNals(unit).filter((nal) => nalType(nal) !== NAL.AUD);
  return joined(...nals.flatMap((nal) => [u32(nal.length), nal]));
}

/** @param {...ArrayLike<number>} parts @returns {Uint8Array<ArrayBuffer>} */
export function joined(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
