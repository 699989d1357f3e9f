// Ten thousand damaged inputs, the same ones each time: the page survives all.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {HEADER_BYTES, WireError, parseVideo} from '../../../web/lib/wire.js';
import {parse} from '../../../web/seat/messages.js';
import {fragment, initSegment} from '../../../web/video/fmp4.js';
import {readKeyFrame, readSps, splitNals, unescaped} from '../../../web/video/h264.js';
import {Video} from '../../../web/video/video.js';

const INPUTS = 10_000;
const SIDE_MAX = 16888;
const SPS = ['6742c01eda0280f684000003000400000300f23c58ba80',
  '6742c01fda014016e840000003004000000f23c60ca8',
  '67f4001e919680a02ff89840000003004000000f23c58ba8'].map(hex);
const KEYS = SPS.map((sps) => joined(hex('0000000109f000000001'), sps,
  hex('00000168ce0fc80000000165b8000004')));

/** @param {string} text */
function hex(text) {
  return Uint8Array.from(Buffer.from(text, 'hex'));
}

/** @param {...Uint8Array} parts */
function joined(...parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** mulberry32: a small generator with a seed. @param {number} seed */
function dice(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Flips, cuts, doubles and fills in. @param {Uint8Array} good @param {() => number} roll */
function damaged(good, roll) {
  /** @param {number} most */
  const below = (most) => Math.floor(roll() * most);
  if (roll() < 0.2) return Uint8Array.from({length: below(200)}, () => below(256));
  let bytes = Uint8Array.from(good);
  for (let left = 1 + below(4); left > 0 && bytes.length > 0; left -= 1) {
    const at = below(bytes.length);
    const kind = below(4);
    if (kind === 0) bytes[at] ^= 1 << below(8);
    else if (kind === 1) bytes = bytes.slice(0, at);
    else if (kind === 2) bytes = joined(bytes.subarray(0, at), bytes);
    else bytes.fill(below(2) * 255, at, at + below(12));
  }
  return bytes;
}

/** @param {Uint8Array} unit @param {{key?: boolean, sequence?: number, captureUs?: number}} [of] */
function packed(unit, {key = true, sequence = 0, captureUs = 1_000_000} = {}) {
  const bytes = new Uint8Array(HEADER_BYTES + unit.length);
  const view = new DataView(bytes.buffer);
  bytes.set([1, 1, Number(key)]);
  view.setUint32(4, sequence, true);
  view.setBigUint64(8, BigInt(captureUs), true);
  view.setUint32(16, unit.length, true);
  bytes.set(unit, HEADER_BYTES);
  return bytes;
}

/** @param {Uint8Array} bytes */
const bufferOf = (bytes) => Uint8Array.from(bytes).buffer;

/** @template T @param {() => T} act @param {Function} kind @returns {T | null} */
function orRefused(act, kind) {
  try {
    return act();
  } catch (fault) {
    assert.ok(fault instanceof kind, `threw ${fault}`);
    return null;
  }
}

test('damaged video frame is parsed whole or refused', () => {
  const roll = dice(1);
  let [good, refused] = [0, 0];
  for (let count = 0; count < INPUTS; count += 1) {
    const bytes = damaged(packed(KEYS[count % KEYS.length]), roll);
    const frame = orRefused(() => parseVideo(bufferOf(bytes)), WireError);
    if (!frame) {
      refused += 1;
      continue;
    }
    good += 1;
    assert.equal(frame.unit.length, bytes.length - HEADER_BYTES);
    assert.ok(Number.isSafeInteger(frame.captureUs) && frame.captureUs >= 0);
  }
  assert.ok(good > 500 && refused > 500, `${good} good, ${refused} refused`);
});

test('damaged message is parsed, ignored or refused', () => {
  const roll = dice(2);
  const text = new TextEncoder().encode(
    '{"kind":"pong","seq":3,"t":12.5,"clock_us":99887766}');
  for (let count = 0; count < INPUTS; count += 1) {
    const bytes = new TextDecoder().decode(damaged(text, roll));
    const message = orRefused(() => parse(bytes), WireError);
    if (message?.kind === 'pong') assert.ok(Number.isInteger(message.clock_us));
  }
});

test('damaged unit is split only into its own bytes', () => {
  const roll = dice(3);
  for (let count = 0; count < INPUTS; count += 1) {
    const unit = damaged(KEYS[count % KEYS.length], roll);
    const nals = splitNals(unit);
    assert.ok(nals.reduce((sum, nal) => sum + nal.length, 0) <= unit.length);
    for (const nal of nals) {
      assert.ok(nal.length > 0 && nal.buffer === unit.buffer);
      assert.ok(unescaped(nal).length <= nal.length);
    }
  }
});

test('damaged parameter sets have a possible size or are refused', () => {
  const roll = dice(4);
  let good = 0;
  for (let count = 0; count < INPUTS; count += 1) {
    const sps = damaged(SPS[count % SPS.length], roll);
    const read = orRefused(() => readSps(sps), RangeError);
    if (!read) continue;
    good += 1;
    for (const side of [read.width, read.height]) {
      assert.ok(side > 0 && side <= SIDE_MAX, `${read.width}x${read.height}`);
    }
    assert.match(read.codec, /^avc1\.[0-9A-F]{6}$/);
  }
  assert.ok(good > 500, `${good} good`);
});

/** Checks that the boxes fill the bytes exactly. @param {Uint8Array} bytes */
function boxed(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (at < bytes.length) at += Math.max(8, view.getUint32(at));
  return at === bytes.length;
}

test('boxes fill the fragment for any damaged unit', () => {
  const roll = dice(5);
  for (let count = 0; count < INPUTS; count += 1) {
    const unit = damaged(KEYS[count % KEYS.length], roll);
    assert.ok(boxed(fragment({unit, key: true}, count, roll() * 2 ** 50, 1)));
    const key = orRefused(() => readKeyFrame(unit), RangeError);
    if (key) assert.ok(boxed(initSegment(key)));
  }
});

test('damaged stream never throws out of the handler, and requests key frames', () => {
  const roll = dice(6);
  let [asked, pushed] = [0, 0];
  console.warn = () => {};
  const video = new Video(/** @type {any} */ ({
    canvas: {}, video: {}, wanted: null, requestKey: () => (asked += 1),
    ageMs: () => 0, changed: () => {},
  }));
  video.path = {
    name: 'webcodecs', gradual: false, reset: () => {}, rebuild: () => {}, close: () => {},
    push: (frame) => {
      pushed += 1;
      return orRefused(() => readKeyFrame(frame.unit), RangeError) !== null;
    },
  };
  for (let count = 0; count < INPUTS; count += 1) {
    const frame = packed(KEYS[count % KEYS.length], {key: roll() < 0.3, sequence: count});
    video.frame(bufferOf(roll() < 0.5 ? frame : damaged(frame, roll)));
  }
  assert.ok(pushed > 1000 && asked > 0 && video.count.dropped > 0);
});
