// Both video paths in browsers that refuse, fail and take decoders away.

import assert from 'node:assert/strict';
import {beforeEach, test} from 'node:test';

import {HeldRemedy} from '../../../web/video/held.js';
import {MsePath} from '../../../web/video/mse.js';
import {WebCodecsPath} from '../../../web/video/webcodecs.js';

console.warn = () => {};
/** @param {string} sps */
const key = (sps) => Uint8Array.from(Buffer.from(
  `00000001${sps}00000168ce0fc80000000165b8000004`, 'hex'));
const SMALL = key('6742c01eda0280f684000003000400000300f23c58ba80');
const WIDE = key('6742c01fda014016e840000003004000000f23c60ca8');
const CUT = key('6742c01e');
const DELTA = Uint8Array.from([0, 0, 0, 1, 0x41, 0x9a, 0x21]);

let sequence = 0;
/** @param {Uint8Array<ArrayBuffer>} unit @param {number} captureUs */
const frame = (unit, captureUs) => ({
  key: unit !== DELTA, sequence: sequence++, captureUs, unit,
});

class FakeBuffer {
  constructor() {
    this.updating = false;
    this.buffered = {length: 0, start: () => 0};
    /** @type {Uint8Array[]} */
    this.appended = [];
    this.refuses = false;
    this.onupdateend = () => {};
    this.onerror = () => {};
  }

  /** @param {Uint8Array} bytes */
  appendBuffer(bytes) {
    if (this.refuses) throw new DOMException('full', 'QuotaExceededError');
    this.appended.push(bytes);
    this.updating = true;
  }

  done() {
    this.updating = false;
    this.onupdateend();
  }
}

/** @type {FakeSource[]} */
const sources = [];
class FakeSource extends EventTarget {
  constructor() {
    super();
    /** @type {FakeBuffer[]} */
    this.buffers = [];
    this.refuses = false;
    sources.push(this);
  }

  addSourceBuffer() {
    if (this.refuses) throw new DOMException('no', 'NotSupportedError');
    const made = new FakeBuffer();
    this.buffers.push(made);
    return made;
  }

  opens() {
    this.dispatchEvent(new Event('sourceopen'));
  }
}

function mse() {
  sources.length = 0;
  const video = {
    currentTime: 0, playbackRate: 1, paused: false, seeking: false, src: '',
    removeAttribute: () => {}, requestVideoFrameCallback: () => {},
    /** @type {null | (() => void)} */
    onerror: null, error: {message: 'decode error'},
  };
  /** @type {string[]} */
  const faults = [];
  let left = 0;
  const path = new MsePath(/** @type {any} */ ({
    video, shown: () => {}, lost: (/** @type {string} */ fault) => faults.push(fault),
    leaving: () => (left += 1),
  }));
  return {path, video, faults, left: () => left};
}

beforeEach(() => {
  Object.assign(globalThis, {MediaSource: FakeSource});
  URL.createObjectURL = () => 'blob:';
  URL.revokeObjectURL = () => {};
});

test('mse: opened source gets the units since the key frame', () => {
  const {path, faults} = mse();
  assert.equal(path.push(frame(DELTA, 1)), false);
  assert.equal(path.push(frame(SMALL, 1000)), true);
  assert.equal(path.push(frame(DELTA, 34_000)), true);
  sources[0].opens();
  const [buffer] = sources[0].buffers;
  assert.equal(buffer.appended.length, 1, 'init and key frame');
  buffer.done();
  assert.equal(buffer.appended.length, 2, 'what came meanwhile');
  assert.deepEqual(faults, []);
});

test('mse: new codec takes a new source and loses no key frame', () => {
  const {path, faults, left} = mse();
  sources[0].opens();
  assert.equal(path.push(frame(SMALL, 1000)), true);
  assert.equal(path.push(frame(WIDE, 34_000)), true);
  assert.equal(sources.length, 2);
  assert.equal(left(), 1, 'the last picture is kept');
  sources[1].opens();
  assert.equal(sources[1].buffers[0].appended.length, 1);
  assert.deepEqual(faults, []);
});

test('mse: playback continues in the same source when the clock goes back', () => {
  const {path, faults} = mse();
  sources[0].opens();
  path.push(frame(SMALL, 9_000_000));
  assert.equal(path.push(frame(SMALL, 6000)), true);
  assert.equal(path.push(frame(DELTA, 39_000)), true);
  assert.equal(sources.length, 1);
  assert.deepEqual(faults, []);
});

test('mse: position jumps when far behind, and speeds up when a little behind', () => {
  const {path, video} = mse();
  sources[0].opens();
  path.push(frame(SMALL, 1_000_000));
  sources[0].buffers[0].done();
  path.push(frame(DELTA, 1_080_000));
  path.push(frame(SMALL, 1_160_000));
  sources[0].buffers[0].done();
  sources[0].buffers[0].done();
  assert.equal(video.currentTime, 0.16);
  path.push(frame(DELTA, 1_250_000));
  sources[0].buffers[0].done();
  assert.equal(video.currentTime, 0.16, 'a little behind: faster');
  assert.ok(video.playbackRate > 1);
});

test('mse: after a pause the next picture follows where the last one ends', () => {
  const {path, video} = mse();
  sources[0].opens();
  path.push(frame(SMALL, 1_000_000));
  sources[0].buffers[0].done();
  video.currentTime = 0.1;
  path.push(frame(DELTA, 2_500_000));
  sources[0].buffers[0].done();
  assert.equal(video.currentTime, 0.1, 'it stands there already');
  assert.equal(path.timeline.newestS, 0.1);
});

for (const [what, breaks] of /** @type {const} */ ([
  ['an append that throws', () => (sources[0].buffers[0].refuses = true)],
  ['a buffer that errs', () => sources[0].buffers[0].onerror()],
])) {
  test(`mse: ${what} is a fault, and the next source plays`, () => {
    const {path, faults} = mse();
    sources[0].opens();
    path.push(frame(SMALL, 1000));
    sources[0].buffers[0].done();
    breaks();
    path.push(frame(DELTA, 34_000));
    assert.equal(faults.length, 1);
    assert.equal(path.push(frame(SMALL, 67_000)), true);
    sources[1].opens();
    assert.equal(sources[1].buffers[0].appended.length, 1);
  });
}

test('mse: error of the element is a fault once; a repeated old error is ignored', () => {
  const {path, video, faults} = mse();
  const old = video.onerror;
  old?.();
  assert.deepEqual(faults, ['decode error']);
  old?.();
  assert.equal(faults.length, 1);
  path.close();
  assert.equal(path.push(frame(SMALL, 1)), false);
});

test('mse: refused type is a fault; cut parameter sets are not', () => {
  const {path, faults} = mse();
  sources[0].opens();
  assert.equal(path.push(frame(CUT, 1)), false);
  assert.deepEqual(faults, []);
  sources[0].refuses = true;
  assert.equal(path.push(frame(SMALL, 1)), false);
  assert.match(faults[0], /NotSupportedError/);
});

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
