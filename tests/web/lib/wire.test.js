// web/lib/wire.js against the golden vectors that Python reads too.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {
  HEADER_BYTES, WireError, encode, parseDown, parseVideo,
} from '../../../web/lib/wire.js';
import '../../../web/seat/drawer/picture-settings.js'; // defines the fields of `picture`
import '../../../web/seat/second_camera.js'; // defines `view`
import {tidyCode} from '../../../web/seat/drawer/drawer-wire.js';

/** @param {string} name */
const vectors = (name) =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8'));
/** @param {string} hex @returns {ArrayBuffer} */
const bytes = (hex) => {
  const made = new Uint8Array(hex.length / 2);
  made.forEach((_, at) => (made[at] = parseInt(hex.slice(2 * at, 2 * at + 2), 16)));
  return made.buffer;
};

test('messages of the page encode to the shared vectors', () => {
  const {good} = vectors('drive_up');
  assert.ok(good.length >= 12);
  for (const {text, fields} of good) {
    assert.deepEqual(JSON.parse(encode(fields)), JSON.parse(text));
  }
});

test('page refuses to send messages that the car refuses', () => {
  for (const {fields, text} of vectors('drive_up').refused) {
    if (fields) assert.throws(() => encode(fields), WireError, text);
  }
  for (const throttle of [NaN, Infinity, -Infinity]) {
    const drive = /** @type {const} */ ({kind: 'drive', seq: 1, t: 1, seen: 1, throttle, steer: 0});
    assert.throws(() => encode(drive), WireError);
  }
  assert.throws(() => encode(/** @type {any} */ ({kind: 'fly', height: 3})), /unknown kind/);
  assert.throws(() => encode(/** @type {any} */ ({kind: 'toString'})), /unknown kind/);
});

test('refusal names the message, the value and the limit', () => {
  try {
    encode({kind: 'drive', seq: 1, t: 1, seen: 1, throttle: 99, steer: 0});
    assert.fail('was sent');
  } catch (fault) {
    assert.ok(fault instanceof WireError);
    assert.equal(fault.what, 'drive refused');
    assert.match(fault.value, /99/);
    assert.match(fault.limit, /throttle: a number from -1 to 1/);
  }
});

test('messages of the car are parsed', () => {
  for (const {text, fields} of vectors('drive_down').good) {
    assert.deepEqual(parseDown(text), fields);
  }
});

test('malformed messages are refused, unknown kinds ignored', () => {
  const {refused, unknown} = vectors('drive_down');
  for (const {text} of refused) assert.throws(() => parseDown(text), WireError, text);
  for (const {text} of unknown) assert.equal(parseDown(text), null);
  assert.equal(parseDown('{"kind":"toString"}'), null);
});

test('parts of a state are checked too', () => {
  const state = vectors('drive_down').good[1].fields;
  for (const wrong of [
    {stop: {cause: 'estop'}}, {stop: []}, {battery: {volts: 'full'}}, {ranges: {}},
    {ranges: [{name: 'front'}]}, {ranges: [7]}, {role: null}, {throttle: '1'},
  ]) {
    assert.throws(() => parseDown(JSON.stringify({...state, ...wrong})), WireError);
  }
});

test('video frames are parsed without a copy, and malformed ones refused', () => {
  const {good, refused} = vectors('video');
  for (const {hex, fields} of good) {
    const frame = parseVideo(bytes(hex));
    assert.equal(frame.key, fields.key);
    assert.equal(frame.sequence, fields.sequence);
    assert.equal(frame.captureUs, fields.capture_us);
    assert.equal(Buffer.from(frame.unit).toString('hex'), fields.unit);
    assert.equal(frame.unit.byteOffset, HEADER_BYTES, 'a view, no copy');
  }
  for (const {hex} of refused) assert.throws(() => parseVideo(bytes(hex)), WireError);
});

test('code is normalised from any usual spelling', () => {
  for (const typed of ['abcd2345', 'ABCD2345', ' Abcd 2345 ', 'abcd-2345', 'ab–cd—23 45', 'ＡＢＣＤ２３４５']) {
    assert.equal(tidyCode(typed), 'abcd2345', typed);
  }
  assert.equal(tidyCode('012 345'), '012345');
  assert.equal(tidyCode('x'.repeat(40)).length, 32, 'as many as the car takes');
  assert.equal(tidyCode(' - '), '');
});
