// Media Source path in browsers that refuse and fail.

import assert from 'node:assert/strict';
import {beforeEach, test} from 'node:test';

import {Picture} from '../../../web/recordings/player/picture.js';
import {MsePath} from '../../../web/video/mse.js';
import {supports} from '../../../web/video/support.js';
import {CUT, DELTA, GRADUAL, SMALL, WIDE, frame} from './units.js';

console.warn = () => {};
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
    this.duration = NaN;
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

/** @param {object} [more] of the video */
function mse(more) {
  sources.length = 0;
  /** @type {number[]} */
  const shown = [];
  const video = {
    currentTime: 0, playbackRate: 1, paused: false, seeking: false, src: '',
    removeAttribute: () => {}, requestVideoFrameCallback: () => {},
    play: async () => {},
    /** @type {null | (() => void)} */
    onerror: null, error: {message: 'decode error'}, readyState: 2, ...more,
  };
  /** @type {string[]} */
  const faults = [];
  /** @type {boolean[]} */
  const blocked = [];
  let left = 0;
  const path = new MsePath(/** @type {any} */ ({
    video, shown: (/** @type {number} */ captureUs) => shown.push(captureUs), lost: (/** @type {string} */ fault) => faults.push(fault),
    leaving: () => (left += 1), blocked: (/** @type {boolean} */ one) => blocked.push(one),
  }));
  return {path, video, faults, blocked, shown, left: () => left};
}

/** @type {(() => void)[]} */
let paints = [];
function paint() {
  const now = paints;
  paints = [];
  for (const each of now) each();
}

beforeEach(() => {
  paints = [];
  Object.assign(globalThis, {requestAnimationFrame: (/** @type {() => void} */ each) => paints.push(each)});
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
  assert.equal(sources[0].duration, Infinity, 'Safari would end it');
  const [buffer] = sources[0].buffers;
  assert.equal(buffer.appended.length, 1, 'init and key frame');
  buffer.done();
  assert.equal(buffer.appended.length, 2, 'what came meanwhile');
  assert.deepEqual(faults, []);
});

test('mse: recorded units of a jump wait until the source is open', () => {
  const {video} = mse();
  sources.length = 0;
  const picture = new Picture(/** @type {any} */ ({canvas: {}, video, wanted: 'mse', lost: () => assert.fail('lost')}));
  const jump = Array.from({length: 60}, (_, index) =>
    ({timeS: index / 60, key: index === 0, unit: index === 0 ? SMALL : DELTA}));
  let next = 0;
  const feed = () => {
    while (next < jump.length && picture.hasRoom()) assert.ok(picture.push(jump[next++], false), `unit ${next}`);
  };
  feed();
  assert.ok(next < jump.length, 'the source has no room for all');
  sources[0].opens();
  for (let turn = 0; turn < 20; turn += 1) {
    feed();
    sources[0].buffers[0].done();
  }
  assert.equal(next, jump.length);
});

test('mse: browser that refuses to play is known, and plays from the next tap', async () => {
  const {path, video, blocked, faults} = mse();
  /** @type {Map<string, () => void>} */
  const gestures = new Map();
  Object.assign(globalThis, {addEventListener: (/** @type {string} */ kind, /** @type {() => void} */ act) => gestures.set(kind, act)});
  video.paused = true;
  for (const name of ['AbortError', 'NotAllowedError']) {
    video.play = async () => {
      throw new DOMException('no', name);
    };
    path.chase();
    await Promise.resolve();
  }
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(blocked, [true]);
  assert.deepEqual([...gestures.keys()], ['click', 'keydown']);
  let plays = 0;
  video.play = async () => {
    plays += 1;
  };
  gestures.get('click')?.();
  await Promise.resolve();
  assert.deepEqual([plays, blocked, faults], [1, [true, false], []]);
  path.close();
  gestures.get('keydown')?.();
  assert.equal(plays, 1, 'the path is closed');
});

test('mse: iPhone with ManagedMediaSource alone plays', () => {
  let remote = true;
  class Managed extends FakeSource {
    opens() {
      if (!remote) super.opens();
    }
  }
  Reflect.deleteProperty(globalThis, 'MediaSource');
  Object.assign(globalThis, {ManagedMediaSource: Managed});
  try {
    assert.ok(supports.mse());
    const {path, video, faults} = mse();
    // It opens only where remote playback is off.
    remote = /** @type {any} */ (video).disableRemotePlayback !== true;
    sources[0].opens();
    assert.equal(path.push(frame(SMALL, 1000)), true);
    assert.equal(sources[0].buffers[0].appended.length, 1);
    assert.deepEqual([sources[0].duration, faults], [Infinity, []]);
  } finally {
    Reflect.deleteProperty(globalThis, 'ManagedMediaSource');
  }
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

test('mse: source that starts at a recovery point gets the primer first', () => {
  const {path} = mse();
  sources[0].opens();
  path.push(frame(GRADUAL, 1_000_000));
  path.push(frame(DELTA, 1_033_000));
  const [first] = sources[0].buffers[0].appended;
  const text = Buffer.from(first).toString('latin1');
  assert.equal(text.split('moof').length, 3, 'primer and unit');
  assert.ok(path.gradual && path.timeline.captureUs(0) === path.primerUs);
  path.rebuild();
  sources[1].opens();
  path.push(frame(SMALL, 2_000_000));
  assert.equal(path.gradual, false);
});

test('mse: pictures are reported though the browser makes no calls for them', () => {
  const {path, video, shown} = mse();
  sources[0].opens();
  path.push(frame(SMALL, 1000));
  sources[0].buffers[0].done();
  for (let times = 0; times < 40; times += 1) paint();
  assert.deepEqual(shown, [], 'nothing plays yet');
  video.currentTime = path.timeline.newestS + 0.001;
  for (let times = 0; times < 29; times += 1) paint();
  assert.deepEqual(shown, [], 'a call may still come');
  paint();
  paint();
  assert.deepEqual(shown, [1000]);
  path.push(frame(DELTA, 34_000));
  video.currentTime = path.timeline.newestS + 0.001;
  paint();
  assert.deepEqual(shown, [1000, 34_000]);
});

test('mse: calls of the browser alone count where it makes them', () => {
  /** @type {((nowMs: number, about: object) => void)[]} */
  const calls = [];
  const {path, video, shown} = mse({requestVideoFrameCallback: (/** @type {any} */ each) => calls.push(each)});
  sources[0].opens();
  path.push(frame(SMALL, 1000));
  sources[0].buffers[0].done();
  video.currentTime = path.timeline.newestS + 0.001;
  calls[0](0, {mediaTime: path.timeline.newestS, expectedDisplayTime: 0});
  assert.deepEqual(shown, [1000]);
  path.push(frame(DELTA, 34_000));
  video.currentTime = path.timeline.newestS + 0.001;
  for (let times = 0; times < 60; times += 1) paint();
  assert.deepEqual(shown, [1000]);
});
