// H.264 parameter sets, fragments read back box by box, and the chase of the live edge.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {TIMESCALE, fragment, initSegment, toLengthPrefixed} from '../../../web/video/fmp4.js';
import {nalType, readKeyFrame, readSps, splitNals, unescaped} from '../../../web/video/h264.js';
import {playbackRate} from '../../../web/video/mse.js';
import {Video} from '../../../web/video/video.js';

/** @param {string} hex */
const bytes = (hex) => Uint8Array.from(Buffer.from(hex.replace(/\s/g, ''), 'hex'));

// Made by x264 165, ultrafast zerolatency.
const SETS = [
  {codec: 'avc1.42C01E', width: 640, height: 480,
    sps: '6742c01eda0280f684000003000400000300f23c58ba80'},
  {codec: 'avc1.42C01F', width: 1280, height: 720,
    sps: '6742c01fda014016e840000003004000000f23c60ca8'},
  {codec: 'avc1.42C01F', width: 854, height: 482,
    sps: '6742c01fda0360ff9a2210000003001000000303c8f1832a'},
  {codec: 'avc1.F4001E', width: 640, height: 360,
    sps: '67f4001e919680a02ff89840000003004000000f23c58ba8'},
];
const PPS = '68ce0fc8';
const KEY = bytes(`0000000109f0 00000001${SETS[0].sps} 000001${PPS} 0000000165b8000004`);

test('SPS gives codec and cropped size', () => {
  for (const {sps, codec, width, height} of SETS) {
    assert.deepEqual(readSps(bytes(sps)), {codec, width, height});
  }
});

test('cut SPS is refused', () => {
  for (const {sps} of SETS) {
    assert.throws(() => readSps(bytes(sps).subarray(0, 7)), RangeError);
  }
  assert.throws(() => readSps(bytes('6742')), RangeError);
  assert.throws(() => readSps(bytes('6742c01e0000000000000000')), RangeError);
});

test('Annex B is cut at start codes of three and four bytes', () => {
  assert.deepEqual(splitNals(KEY).map(nalType), [9, 7, 8, 5]);
  assert.deepEqual(splitNals(bytes('41 9a')), []);
  assert.deepEqual(splitNals(bytes('000001')), []);
  assert.deepEqual(splitNals(bytes('000001000001419a')).map((nal) => [...nal]), [[0x41, 0x9a]]);
  assert.deepEqual([...splitNals(bytes('00000141000003010203'))[0]], [0x41, 0, 0, 3, 1, 2, 3]);
  assert.deepEqual([...unescaped(bytes('0000030100000301'))], [0, 0, 1, 0, 0, 1]);
});

test('key frame without its parameter sets is not accepted', () => {
  assert.equal(readKeyFrame(bytes('0000000165b80000')), null);
  assert.equal(readKeyFrame(KEY)?.codec, 'avc1.42C01E');
});

/** @typedef {{type: string, body: Uint8Array, boxes: Box[]}} Box */
const HOLDERS = ['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl', 'mvex', 'moof', 'traf'];

/** @param {Uint8Array} data @returns {Box[]} */
function boxes(data) {
  const found = [];
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < data.length;) {
    const size = view.getUint32(at);
    assert.ok(size >= 8 && at + size <= data.length, `box of ${size} at ${at}`);
    const type = String.fromCharCode(...data.subarray(at + 4, at + 8));
    const body = data.subarray(at + 8, at + size);
    found.push({type, body, boxes: HOLDERS.includes(type) ? boxes(body) : []});
    at += size;
  }
  return found;
}
/** @param {Box[]} list @param {string} path */
function find(list, path) {
  /** @type {Box | undefined} */
  let box;
  for (const type of path.split('/')) {
    box = list.find((one) => one.type === type);
    assert.ok(box, `no ${type} of ${path}`);
    list = box.boxes;
  }
  return /** @type {Box} */ (box);
}
/** @param {Box} box @param {number} at */
const u32At = (box, at) =>
  new DataView(box.body.buffer, box.body.byteOffset, box.body.byteLength).getUint32(at);

test('init segment has codec and size at the standard places', () => {
  const key = readKeyFrame(KEY);
  assert.ok(key);
  const all = boxes(initSegment(key));
  assert.deepEqual(all.map((box) => box.type), ['ftyp', 'moov']);
  assert.equal(u32At(find(all, 'moov/trak/mdia/mdhd'), 12), TIMESCALE);
  const stsd = find(all, 'moov/trak/mdia/minf/stbl/stsd');
  const avc1 = boxes(stsd.body.subarray(8))[0];
  assert.equal(avc1.type, 'avc1');
  const view = new DataView(avc1.body.buffer, avc1.body.byteOffset, avc1.body.byteLength);
  assert.deepEqual([view.getUint16(24), view.getUint16(26)], [640, 480]);
  const avcC = boxes(avc1.body.subarray(78))[0];
  assert.equal(avcC.type, 'avcC');
  assert.deepEqual([...avcC.body.subarray(0, 6)], [1, 0x42, 0xc0, 0x1e, 0xff, 0xe1]);
  assert.equal(avcC.body.length, 6 + 2 + key.sps.length + 1 + 2 + key.pps.length);
  for (const box of ['moov/mvhd', 'moov/trak/tkhd', 'moov/mvex/trex',
    'moov/trak/mdia/hdlr', 'moov/trak/mdia/minf/vmhd', 'moov/trak/mdia/minf/dinf/dref']) {
    find(all, box);
  }
  assert.equal(find(all, 'moov/mvhd').body.length, 100);
  assert.equal(find(all, 'moov/trak/tkhd').body.length, 84);
});

test('fragment has one sample with its time and offset', () => {
  const timeUs = 2 ** 33 + 7;
  const made = fragment({unit: KEY, key: true}, 3, timeUs, 33_333);
  const all = boxes(made);
  assert.deepEqual(all.map((box) => box.type), ['moof', 'mdat']);
  assert.equal(u32At(find(all, 'moof/mfhd'), 4), 3);
  const tfdt = find(all, 'moof/traf/tfdt');
  assert.equal(u32At(tfdt, 4) * 2 ** 32 + u32At(tfdt, 8), timeUs);
  const trun = find(all, 'moof/traf/trun');
  assert.equal(u32At(trun, 4), 1);
  const [offset, duration, size, flags] = [8, 12, 16, 20].map((at) => u32At(trun, at));
  assert.equal(duration, 33_333);
  assert.equal(flags, 0x02000000);
  assert.deepEqual(made.subarray(offset, offset + size), all[1].body);
  const delta = boxes(fragment({unit: bytes('00000001419a'), key: false}, 4, 0, 1));
  assert.equal(u32At(find(delta, 'moof/traf/trun'), 20), 0x01010000);
});

test('samples are length-prefixed, without delimiters', () => {
  const made = toLengthPrefixed(KEY);
  const view = new DataView(made.buffer);
  const types = [];
  for (let at = 0; at < made.length; at += 4 + view.getUint32(at)) types.push(made[at + 4] & 31);
  assert.deepEqual(types, [7, 8, 5]);
});

test('playback rate: faster behind, slower ahead, within limits', () => {
  assert.ok(playbackRate(0.1) > 1.3);
  assert.ok(playbackRate(-0.05) < 1);
  assert.ok(playbackRate(60) <= 4 && playbackRate(-60) >= 0.5);
  assert.equal(playbackRate(-0.035), 1);
});

test('picture is at least as old as its time on screen', () => {
  /** @type {number | null} */
  let clockMs = null;
  const video = new Video(/** @type {any} */ ({
    canvas: {}, video: {}, wanted: null, requestKey: () => {}, ageMs: () => clockMs,
    changed: () => {},
  }));
  assert.equal(video.ageMs(1000), null, 'none was shown');
  video.shown(9_000_000, 1000);
  assert.equal(video.ageMs(1700), 700, 'no clock yet');
  clockMs = -60_000;
  assert.equal(video.ageMs(1700), 700, 'the car was started anew');
  clockMs = 740;
  assert.equal(video.ageMs(1700), 740);
});
