// A video path that fails: its restarts, and the change to the other path.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {STRINGS} from '../../../web/seat/strings.js';
import {HeldPictures} from '../../../web/video/held.js';
import {FPS_MOST, Rate, Remedy} from '../../../web/video/remedy.js';
import {Video} from '../../../web/video/video.js';

/** Time until units every `everyMs` are too many without a picture. @param {Remedy} remedy */
function silenceMs(remedy, everyMs = 33, fromMs = 0) {
  for (let nowMs = fromMs; nowMs < fromMs + 10_000; nowMs += everyMs) {
    if (remedy.fed(nowMs)) return nowMs - fromMs;
  }
  return Infinity;
}

test('decoder without output is detected; the first picture may take longer', () => {
  const remedy = new Remedy();
  const start = silenceMs(remedy);
  assert.ok(start > 1200 && start < 1700, `${start}`);
  remedy.pictured();
  const later = silenceMs(remedy, 33, 20_000);
  assert.ok(later > 500 && later < 1000, `${later}`);
});

test('intra refresh has longer until its first picture', () => {
  const remedy = new Remedy();
  for (let nowMs = 0; nowMs < 5000; nowMs += 33) assert.equal(remedy.fed(nowMs, true), false);
  assert.equal(remedy.fed(5000), true, 'a decoder that has begun elsewhere is silent');
});

test('regular pictures or a camera pause are no decoder silence', () => {
  const remedy = new Remedy();
  for (let nowMs = 0; nowMs < 10_000; nowMs += 33) {
    assert.equal(remedy.fed(nowMs), false);
    remedy.pictured();
  }
  remedy.fed(10_000);
  for (let nowMs = 60_000; nowMs < 60_300; nowMs += 33) {
    assert.equal(remedy.fed(nowMs), false, 'the pause is not the decoder\'s');
  }
});

test('path is rebuilt twice, changed at the third fault; old faults are forgotten', () => {
  const remedy = new Remedy();
  assert.deepEqual([0, 1000, 2000].map((nowMs) => remedy.failed(nowMs)),
    ['rebuild', 'rebuild', 'change']);
  assert.equal(remedy.failed(3000), 'rebuild', 'the other way has its own');
  assert.deepEqual([60_000, 80_000, 100_000].map((nowMs) => remedy.failed(nowMs)),
    ['rebuild', 'rebuild', 'rebuild']);
});

/**
 * Time until a decoder that keeps the last `held` units is detected.
 * @param {number} held @param {number} queued @param {number} everyMs
 */
function detectedMs(held, queued = 0, everyMs = 33) {
  const pictures = new HeldPictures();
  for (let count = 0; count * everyMs < 10_000; count += 1) {
    if (pictures.fed(count, queued, count * everyMs)) return count * everyMs;
    if (count >= held) pictures.pictured(count - held);
  }
  return Infinity;
}

test('decoder that holds three pictures is detected after half a second; two are normal', () => {
  assert.equal(detectedMs(2), Infinity);
  const detected = detectedMs(3);
  assert.ok(detected > 500 && detected < 750, `${detected}`);
  assert.equal(detectedMs(30), detected, 'a GOP');
});

test('slow decoder with a queue holds no pictures', () => {
  assert.equal(detectedMs(30, 1), Infinity);
});

test('damaged units without a picture and camera pauses are no held pictures', () => {
  const damaged = new HeldPictures();
  for (let count = 0; count < 100; count += 1) {
    assert.equal(damaged.fed(count, 0, count * 33), false);
    if (count % 4 === 0) damaged.pictured(count);
  }
  const paused = new HeldPictures();
  for (const nowMs of [0, 33, 66, 99, 60_000, 60_033, 60_066]) {
    assert.equal(paused.fed(nowMs, 0, nowMs), false);
  }
});

/** @param {() => number | null} ageMs @param {object} [more] */
const watching = (ageMs, more) => new Video(/** @type {any} */ ({
  canvas: {}, video: {}, wanted: null, requestKey: () => {}, ageMs, changed: () => {}, ...more,
}));

test('picture age keeps growing when the clock is lost with the link', () => {
  /** @type {number | null} */
  let clockMs = 120;
  const video = watching(() => clockMs);
  video.shown(9_000_000, 1000);
  assert.equal(video.ageMs(1000), 120);
  clockMs = null;
  assert.equal(video.ageMs(1500), 620, 'capture to now, not since it was shown');
  assert.equal(video.ageSure(1500), true);
});

test('picture age without a clock is shown as a minimum', () => {
  /** @type {number | null} */
  let clockMs = null;
  const video = watching(() => clockMs);
  video.shown(9_000_000, 1000);
  assert.equal(video.ageSure(1700), false);
  clockMs = -60_000;
  assert.equal(video.ageSure(1700), false, 'another clock than the picture\'s');
  clockMs = 780;
  assert.equal(video.ageSure(1700), true);
  assert.equal(STRINGS.old(1.44, true), 'picture is 1.4\u00a0s old');
  assert.equal(STRINGS.old(1.44, false), 'picture is at least 1.4\u00a0s old');
});

test('hidden page counts no decoder faults', () => {
  console.warn = () => {};
  const video = watching(() => 0);
  video.setVisible(false);
  for (let count = 0; count < 10; count += 1) video.lost('codec reclaimed');
  assert.equal(video.count.faults, 0);
});

test('page knows why it has no picture: no path, a tap, a decoder that gives nothing', () => {
  console.warn = () => {};
  const video = watching(() => 0);
  assert.equal(video.trouble, 'unsupported');
  video.unsupported = false;
  video.lost('one');
  video.lost('two');
  assert.equal(video.trouble, '', 'a decoder may fail once or twice');
  video.lost('no 4:2:2');
  assert.deepEqual([video.trouble, video.fault], ['decoder', 'no 4:2:2']);
  video.blocked = true;
  video.path = /** @type {any} */ ({name: 'mse'});
  assert.equal(video.trouble, 'tap');
  video.blocked = false;
  assert.equal(video.trouble, 'decoder');
  video.shown(1, 1);
  assert.equal(video.trouble, '');
});

test('device that falls behind twice asks for half the pictures, down to ten a second', () => {
  const rate = new Rate();
  assert.equal(rate.behind(0, 30), true);
  assert.equal(rate.most, FPS_MOST, 'once is no news');
  assert.equal(rate.behind(1000, 30), true);
  assert.equal(rate.most, 15);
  assert.equal(rate.behind(2000, 30), true, 'the new rate is under way');
  assert.equal(rate.most, 15);
  assert.equal(rate.behind(5000, 15), true);
  assert.equal(rate.most, 10);
  assert.equal(rate.behind(9000, 10), false, 'fewer are no help');
});

test('camera that keeps its rate is no help, nor a device that is behind for sure', () => {
  const rate = new Rate();
  assert.equal(rate.behind(0, 30, true), true);
  assert.equal(rate.most, 15);
  assert.equal(rate.behind(8000, 26, true), false, 'nearly as many arrive as before');
});

test('higher rate is tried again, later each time that it fails', () => {
  const rate = new Rate();
  rate.behind(0, 30, true);
  assert.equal(rate.keptUp(19_000), false);
  assert.equal(rate.keptUp(20_000), true);
  assert.equal(rate.most, 30);
  rate.behind(24_000, 30, true);
  assert.equal(rate.most, 15);
  assert.equal(rate.keptUp(60_000), false);
  assert.equal(rate.keptUp(64_000), true);
  assert.equal(rate.keptUp(104_000), true);
  assert.equal(rate.most, FPS_MOST);
  assert.equal(rate.keptUp(1e6), false);
});

test('slow decoder asks for fewer pictures before it changes the path', () => {
  /** @type {number[]} */
  const asked = [];
  const video = watching(() => 0, {requestFps: (/** @type {number} */ most) => asked.push(most)});
  const nowMs = performance.now();
  video.arrivedMs = Array.from({length: 30}, (_, index) => nowMs - 33 * (30 - index));
  for (let times = 0; times < 5; times += 1) video.lost('9 units wait in the decoder', true);
  assert.equal(asked.length, 1);
  assert.equal(video.faultsInRow, 0);
});
