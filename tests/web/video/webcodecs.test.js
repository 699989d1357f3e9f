// WebCodecs path in browsers that refuse, fail, and take or hold decoders.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {HeldRemedy} from '../../../web/video/held.js';
import {PRIMER_US} from '../../../web/video/h264.js';
import {WebCodecsPath} from '../../../web/video/webcodecs.js';
import {CUT, DELTA, GRADUAL, SMALL, WIDE, frame} from './units.js';

console.warn = () => {};
/** @type {FakeDecoder[]} */
const decoders = [];
class FakeDecoder {
  /** @param {{output: (picture: unknown) => void, error: (fault: Error) => void}} init */
  constructor(init) {
    this.init = init;
    this.state = 'unconfigured';
    this.decodeQueueSize = 0;
    this.taken = 0;
    /** @type {number[]} */
    this.heldUs = [];
    this.acceleration = '';
    decoders.push(this);
  }

  /** @param {{hardwareAcceleration: string}} config */
  configure(config) {
    this.acceleration = config.hardwareAcceleration;
    if (refuses) throw new TypeError('no such codec');
    this.state = 'configured';
  }

  /** @param {{timestamp: number}} chunk */
  decode(chunk) {
    if (this.state === 'closed') throw new DOMException('closed', 'InvalidStateError');
    this.taken += 1;
    this.heldUs.push(chunk.timestamp);
    const held = holding.includes(this.acceleration) ? 3 : 0;
    while (this.heldUs.length > held) {
      this.init.output({
        timestamp: this.heldUs.shift(), displayWidth: 640, displayHeight: 480, close: () => {},
      });
    }
  }

  close() {
    this.state = 'closed';
  }
}
let refuses = false;
/** Accelerations whose decoders hold three pictures. @type {string[]} */
let holding = [];
/** @type {Record<string, string>} */
const items = {};

function webcodecs() {
  decoders.length = 0;
  refuses = false;
  holding = [];
  Object.assign(globalThis, {
    VideoDecoder: FakeDecoder, EncodedVideoChunk: function (/** @type {object} */ init) {
      return init;
    },
    requestAnimationFrame: () => {},
    localStorage: {
      getItem: (/** @type {string} */ key) => items[key] ?? null,
      setItem: (/** @type {string} */ key, /** @type {string} */ value) => (items[key] = value),
    },
  });
  /** @type {string[]} */
  const faults = [];
  /** @type {string[]} */
  const held = [];
  const remedy = new HeldRemedy({warn: (fault) => held.push(fault), askKey: () => {}});
  const path = new WebCodecsPath(/** @type {any} */ ({
    canvas: {getContext: () => ({drawImage: () => {}})}, shown: () => {}, decoded: () => {},
    lost: (/** @type {string} */ fault) => faults.push(fault), held: () => remedy,
  }));
  return {path, faults, held};
}

test('webcodecs: refused configuration is a fault, not a throw', () => {
  const {path, faults} = webcodecs();
  refuses = true;
  assert.equal(path.push(frame(SMALL, 1)), false);
  assert.equal(faults.length, 1);
  refuses = false;
  assert.equal(path.push(frame(SMALL, 2)), true);
});

test('webcodecs: decoder closed by the browser is replaced', () => {
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  decoders[0].state = 'closed';
  assert.equal(path.push(frame(DELTA, 2)), false);
  assert.equal(faults.length, 1);
  assert.equal(path.push(frame(SMALL, 3)), true);
  assert.equal(decoders.length, 2);
});

test('webcodecs: late error of a replaced decoder is ignored', () => {
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  path.push(frame(WIDE, 2));
  assert.equal(decoders.length, 2);
  decoders[0].init.error(new Error('late'));
  assert.deepEqual(faults, []);
  assert.equal(path.push(frame(DELTA, 3)), true);
  decoders[1].init.error(new Error('now'));
  assert.deepEqual(faults, ['now']);
});

test('webcodecs: cut parameter sets are dropped; the decoder goes on', () => {
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  assert.equal(path.push(frame(CUT, 2)), false);
  assert.equal(path.push(frame(SMALL, 3)), true);
  assert.equal(decoders.length, 1);
  assert.deepEqual(faults, []);
});

test('webcodecs: short burst is no fault', (context) => {
  let nowMs = 5000;
  context.mock.method(performance, 'now', () => nowMs);
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  const [decoder] = decoders;
  for (decoder.decodeQueueSize = 0; decoder.decodeQueueSize < 30; decoder.decodeQueueSize += 1) {
    assert.equal(path.push(frame(DELTA, 2)), true);
  }
  nowMs += 300;
  decoder.decodeQueueSize = 5;
  assert.equal(path.push(frame(DELTA, 3)), true);
  assert.deepEqual(faults, []);
});

test('webcodecs: decoder that stays behind is a fault after 0.4 s', (context) => {
  let nowMs = 5000;
  context.mock.method(performance, 'now', () => nowMs);
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  decoders[0].decodeQueueSize = 9;
  for (; faults.length === 0 && nowMs < 6000; nowMs += 33) path.push(frame(DELTA, 2));
  assert.ok(nowMs > 5400 && nowMs < 5500, `${nowMs}`);
});

test('webcodecs: decoder queue of more than 2 s is a fault at once', () => {
  const {path, faults} = webcodecs();
  path.push(frame(SMALL, 1));
  decoders[0].decodeQueueSize = 61;
  assert.equal(path.push(frame(DELTA, 2)), false);
  assert.equal(faults.length, 1);
});

/**
 * Feeds two seconds of units, a key frame first and every half a second.
 * @param {WebCodecsPath} path @param {{nowMs: number}} clock
 */
function play(path, clock) {
  for (let count = 0; count < 60; count += 1, clock.nowMs += 33) {
    assert.equal(path.push(frame(count % 15 ? DELTA : SMALL, clock.nowMs * 1000)), true);
  }
}

/** @param {import('node:test').TestContext} context */
function mocked(context) {
  const clock = {nowMs: 5000};
  context.mock.method(performance, 'now', () => clock.nowMs);
  for (const key of Object.keys(items)) delete items[key];
  return clock;
}

const accelerations = () => decoders.map(({acceleration}) => acceleration);

test('webcodecs: software replaces a decoder that holds pictures, for good', (context) => {
  const clock = mocked(context);
  const {path, faults, held} = webcodecs();
  holding = ['no-preference'];
  play(path, clock);
  assert.deepEqual(accelerations(), ['no-preference', 'prefer-software']);
  assert.equal(decoders[0].state, 'closed');
  assert.equal(path.software, true);
  assert.equal(held.length, 1);
  const later = webcodecs();
  play(later.path, clock);
  assert.deepEqual(accelerations(), ['prefer-software'], 'remembered');
  assert.equal(later.path.push(frame(WIDE, 1)), true);
  assert.equal(decoders[1].acceleration, 'no-preference', 'another format');
  assert.deepEqual([...faults, ...later.faults, ...later.held], []);
});

test('webcodecs: software that holds pictures too is given up', (context) => {
  const clock = mocked(context);
  const {path, faults, held} = webcodecs();
  holding = ['no-preference', 'prefer-software'];
  play(path, clock);
  play(path, clock);
  assert.deepEqual(accelerations(), ['no-preference', 'prefer-software', 'no-preference']);
  assert.equal(held.length, 2);
  assert.equal(path.software, false);
  assert.deepEqual(faults, []);
});

test('webcodecs: software that gives no picture is given up', (context) => {
  const clock = mocked(context);
  items['fpvcar.decoder.avc1.42C0.640x480'] = 'software';
  const {path, faults} = webcodecs();
  refuses = true;
  assert.equal(path.push(frame(SMALL, 1)), false);
  refuses = false;
  play(path, clock);
  assert.deepEqual(accelerations(), ['prefer-software', 'no-preference']);
  assert.equal(faults.length, 1);
});

test('webcodecs: software with pictures stays after a fault', (context) => {
  const clock = mocked(context);
  items['fpvcar.decoder.avc1.42C0.640x480'] = 'software';
  const {path, faults} = webcodecs();
  play(path, clock);
  decoders[0].init.error(new Error('damaged'));
  play(path, clock);
  assert.deepEqual(accelerations(), ['prefer-software', 'prefer-software']);
  assert.equal(faults.length, 1);
});

test('webcodecs: decoder that starts at a recovery point gets the primer first', () => {
  const {path, held} = webcodecs();
  /** @type {{type: string, timestamp: number}[]} */
  const chunks = [];
  const shown = [];
  const {decode} = FakeDecoder.prototype;
  FakeDecoder.prototype.decode = function (/** @type {any} */ chunk) {
    chunks.push(chunk);
    if (chunk.timestamp === PRIMER_US || chunk.timestamp > 900_000) decode.call(this, chunk);
  };
  path.decoded = () => shown.push(0);
  try {
    assert.equal(path.push(frame(GRADUAL, 1000)), true);
    assert.equal(path.gradual && shown.length === 0, true, 'its picture is not shown');
    for (let us = 34_000; us < 900_000; us += 33_000) path.push(frame(DELTA, us));
    assert.deepEqual(held, [], 'pictures of an intra refresh come late');
    path.push(frame(DELTA, 933_000));
    assert.equal(path.gradual || shown.length !== 1, false);
    path.push(frame(GRADUAL, 966_000));
  } finally {
    FakeDecoder.prototype.decode = decode;
  }
  assert.equal(decoders.length, 1);
  const keys = chunks.filter(({type}) => type === 'key');
  assert.deepEqual(keys.map(({timestamp}) => timestamp), [PRIMER_US]);
});
