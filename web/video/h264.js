/** H.264 as far as a browser must be told: units of Annex B, size and codec of an SPS. Pure. */

export const NAL = {SLICE: 1, IDR: 5, SEI: 6, SPS: 7, PPS: 8, AUD: 9};

/**
 * A grey IDR picture of 16x16, with its parameter sets. Chromium refuses a stream that does not
 * begin with an IDR picture; behind this one a decoder can start at a recovery point.
 */
export const PRIMER = Uint8Array.of(
  0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x0a, 0xda, 0x7b, 0x01, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3,
  0x01, 0xe8, 0xf1, 0x22, 0x6a, 0, 0, 0, 1, 0x68, 0xce, 0x0f, 0xc8,
  0, 0, 1, 0x65, 0x88, 0x84, 0x3a, 0x26, 0x28, 0x0e,
);
/** Time stamp of its picture, which is not shown. */
export const PRIMER_US = -1;

/** @param {Uint8Array} unit */
export const nalType = (unit) => unit[0] & 0x1f;

/**
 * The NAL units of an access unit, without start codes. ITU-T H.264 annex B.
 * @param {Uint8Array} data @returns {Uint8Array[]}
 */
export function splitNals(data) {
  /** @type {Uint8Array[]} */
  const units = [];
  let begin = -1;
  for (let at = 0; at + 2 < data.length; at += 1) {
    // Almost every byte is > 1: look at the third first and skip ahead.
    if (data[at + 2] > 1) {
      at += 2;
    } else if (data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1) {
      if (begin >= 0) units.push(trimmed(data, begin, at));
      begin = at + 3;
      at += 2;
    }
  }
  if (begin >= 0 && begin < data.length) units.push(trimmed(data, begin, data.length));
  return units.filter((unit) => unit.length > 0);
}

/**
 * Zero bytes before the next start code are no part of a unit (trailing_zero_8bits).
 * @param {Uint8Array} data @param {number} begin @param {number} end
 */
function trimmed(data, begin, end) {
  while (end > begin && data[end - 1] === 0) end -= 1;
  return data.subarray(begin, end);
}

/** A unit's payload without emulation prevention bytes (00 00 03). @param {Uint8Array} unit */
export function unescaped(unit) {
  const bytes = [];
  let zeros = 0;
  for (const byte of unit) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

/** Reads bits and Exp-Golomb codes, section 9.1. Throws RangeError past the end. */
class Bits {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  /** @param {number} count */
  u(count) {
    let value = 0;
    for (let left = count; left > 0; left -= 1) {
      const byte = this.bytes[this.at >> 3];
      if (byte === undefined) throw new RangeError(`SPS ends at bit ${this.at}`);
      value = value * 2 + ((byte >> (7 - (this.at & 7))) & 1);
      this.at += 1;
    }
    return value;
  }

  ue() {
    let zeros = 0;
    while (this.u(1) === 0) {
      zeros += 1;
      if (zeros > 32) throw new RangeError('SPS has a code of more than 32 zeros');
    }
    return 2 ** zeros - 1 + this.u(zeros);
  }

  se() {
    const code = this.ue();
    return code % 2 ? (code + 1) / 2 : -code / 2;
  }
}

/** Level 6.2 ends at 16888, table A-1. */
const SIDE_MAX = 16888;

/** Profiles with chroma and scaling lists in the SPS, section 7.3.2.1.1. */
const HIGH = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/**
 * Codec string (RFC 6381) and cropped size of a sequence parameter set.
 * Throws RangeError for one that is cut or of no possible size.
 * @param {Uint8Array} sps @returns {{codec: string, width: number, height: number}}
 */
export function readSps(sps) {
  if (sps.length < 4) throw new RangeError(`SPS of ${sps.length} bytes, expected >= 4`);
  const codec = 'avc1.' + [...sps.subarray(1, 4)]
    .map((byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join('');
  const bits = new Bits(unescaped(sps.subarray(4)));
  bits.ue(); // seq_parameter_set_id
  let chroma = 1;
  if (HIGH.includes(sps[1])) chroma = skipHigh(bits);
  bits.ue(); // log2_max_frame_num_minus4
  skipOrderCount(bits);
  bits.ue(); // max_num_ref_frames
  bits.u(1); // gaps_in_frame_num_value_allowed_flag
  const columns = bits.ue() + 1;
  const rows = bits.ue() + 1;
  const frameOnly = bits.u(1);
  if (!frameOnly) bits.u(1); // mb_adaptive_frame_field_flag
  bits.u(1); // direct_8x8_inference_flag
  let [width, height] = [columns * 16, rows * 16 * (2 - frameOnly)];
  if (bits.u(1)) {
    // Cropping counts in chroma samples, section 7.4.2.1.1, table 6-1.
    const unitX = chroma === 1 || chroma === 2 ? 2 : 1;
    const unitY = (chroma === 1 ? 2 : 1) * (2 - frameOnly);
    width -= unitX * (bits.ue() + bits.ue());
    height -= unitY * (bits.ue() + bits.ue());
  }
  if (!(width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX)) {
    throw new RangeError(`SPS of ${width}x${height}, expected at most ${SIDE_MAX}`);
  }
  return {codec, width, height};
}

/** @param {Bits} bits @returns {number} chroma_format_idc */
function skipHigh(bits) {
  const chroma = bits.ue();
  if (chroma === 3) bits.u(1); // separate_colour_plane_flag
  bits.ue(); // bit_depth_luma_minus8
  bits.ue(); // bit_depth_chroma_minus8
  bits.u(1); // qpprime_y_zero_transform_bypass_flag
  if (bits.u(1)) {
    for (let list = 0; list < (chroma === 3 ? 12 : 8); list += 1) {
      if (bits.u(1)) skipScalingList(bits, list < 6 ? 16 : 64);
    }
  }
  return chroma;
}

/** Section 7.3.2.1.1.1. @param {Bits} bits @param {number} size */
function skipScalingList(bits, size) {
  let [last, next] = [8, 8];
  for (let at = 0; at < size && next !== 0; at += 1) {
    next = (last + bits.se() + 256) % 256;
    if (next !== 0) last = next;
  }
}

/** @param {Bits} bits */
function skipOrderCount(bits) {
  const type = bits.ue();
  if (type === 0) bits.ue(); // log2_max_pic_order_cnt_lsb_minus4
  if (type !== 1) return;
  bits.u(1); // delta_pic_order_always_zero_flag
  bits.se(); // offset_for_non_ref_pic
  bits.se(); // offset_for_top_to_bottom_field
  for (let left = bits.ue(); left > 0; left -= 1) bits.se();
}

/**
 * A key frame's parameter sets, codec and size; null without them. `gradual`: it is a recovery
 * point, and its first pictures may be incomplete.
 * Throws RangeError as readSps does.
 * @param {Uint8Array} unit
 */
export function readKeyFrame(unit) {
  const nals = splitNals(unit);
  const sps = nals.find((nal) => nalType(nal) === NAL.SPS);
  const pps = nals.find((nal) => nalType(nal) === NAL.PPS);
  const gradual = !nals.some((nal) => nalType(nal) === NAL.IDR);
  return sps && pps ? {sps, pps, gradual, ...readSps(sps)} : null;
}
