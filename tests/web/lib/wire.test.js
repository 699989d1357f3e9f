// web/lib/wire.js and the generated shapes against the golden vectors that Python reads too.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {
  HEADER_BYTES, WireError, anyText, either, exact, maybe, object, parseAs, parseVideo, record, whole,
} from '../../../web/lib/wire.js';
import {UP, encode, parse} from '../../../web/seat/messages.js';
import {tidyCode} from '../../../web/seat/drawer/unlock.js';
import {plain} from '../../../web/seat/strings.js';

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
  for (const {text} of good) assert.deepEqual(JSON.parse(encode(JSON.parse(text))), JSON.parse(text));
});

test('controls of settings name a message of the car and its only field', () => {
  const html = readFileSync(new URL('../../../web/seat/drawer/drawer.html', import.meta.url), 'utf8');
  const controls = [...html.matchAll(/data-setting="(\w+)" name="(\w+)"/g)];
  assert.ok(controls.length >= 3);
  for (const [, kind, field] of controls) {
    assert.deepEqual(Object.keys(/** @type {Record<string, object>} */ (UP)[kind] ?? {}), [field], kind);
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
  for (const {text} of vectors('drive_down').good) assert.deepEqual(parse(text), JSON.parse(text));
});

test('malformed messages are refused, unknown kinds ignored', () => {
  const {refused, unknown} = vectors('drive_down');
  for (const {text} of refused) assert.throws(() => parse(text), WireError, text);
  for (const {text} of unknown) assert.equal(parse(text), null);
  assert.equal(parse('{"kind":"toString"}'), null);
});

test('parts of a state are checked too', () => {
  const state = vectors('drive_down').good[1].fields;
  for (const wrong of [
    {stop: {cause: 'estop'}}, {stop: []}, {battery: {volts: 'full'}}, {ranges: {}},
    {ranges: [{name: 'front'}]}, {ranges: [7]}, {role: null}, {throttle: '1'},
  ]) {
    assert.throws(() => parse(JSON.stringify({...state, ...wrong})), WireError);
  }
});

test('shapes nest, also in themselves', () => {
  /** @type {import('../../../web/lib/wire.js').Shape} */
  const text = {key: anyText, values: maybe(record(either(anyText, object(() => text))))};
  const shapes = {say: {text: object(() => text), at: maybe(exact(() => ({x: whole(0, 4, 2)})))}};
  const read = (/** @type {object} */ fields) => parseAs(shapes, JSON.stringify({kind: 'say', ...fields}));
  const inner = {key: 'in', values: {b: {key: 'x', more: 1}, c: 'd'}};
  for (const good of [{text: inner}, {text: {key: 'a', values: {inner}}}, {text: inner, at: {x: 4}}]) {
    assert.deepEqual(read(good), {kind: 'say', ...good});
  }
  for (const bad of [{}, {text: 'a'}, {text: {key: 1}}, {text: {key: 'a', values: {b: 1}}}, {text: {key: 'a', values: []}},
    {text: {key: 'a', values: {b: {values: {}}}}}, {text: inner, at: {x: 3}}, {text: inner, at: {x: 2, y: 2}}]) {
    assert.throws(() => read(bad), WireError, JSON.stringify(bad));
  }
});

test('typed text is rid of all characters that the car refuses', () => {
  assert.equal(plain('Zoë\u3164\u202e\n 😀'), 'Zoë 😀');
  assert.throws(() => encode({kind: 'name', name: '\u3164'}), WireError, 'a name without a picture');
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
