// Time range of the plots, and the marks of the time axis.

import assert from 'node:assert/strict';
import test from 'node:test';
import '../english.js';
import {STRINGS} from '../../../web/recordings/strings.js';
import {TimeView} from '../../../web/recordings/plots/timeview.js';

/** @param {TimeView} view */
const shown = ({fromS, toS}) => [fromS, toS];

test('zoom keeps the moment in place, and stays within the drive', () => {
  const view = new TimeView(100);
  assert.equal(view.whole, true);
  view.zoom(0.5, 20);
  assert.deepEqual(shown(view), [10, 60]);
  assert.equal(view.share(20), 0.2);
  view.zoom(0.5, 60);
  assert.deepEqual(shown(view), [35, 60]);
  view.zoom(100, 50);
  assert.deepEqual(shown(view), [0, 100]);
  view.zoom(1e-9, 100);
  assert.deepEqual(shown(view), [99.5, 100], 'nothing shorter');
  view.pan(-200);
  assert.deepEqual(shown(view), [0, 0.5]);
});

test('range may be set backwards and beyond the ends', () => {
  const view = new TimeView(60);
  view.set(30, 20);
  assert.deepEqual(shown(view), [20, 30]);
  view.set(55, 75);
  assert.deepEqual(shown(view), [40, 60]);
  view.all();
  assert.deepEqual(shown(view), [0, 60]);
  const short = new TimeView(0.2);
  short.zoom(0.1, 0.1);
  assert.deepEqual(shown(short), [0, 0.2]);
});

test('range follows a moment that leaves it', () => {
  const view = new TimeView(100);
  view.set(10, 30);
  assert.equal(view.follow(30), false);
  assert.equal(view.follow(31), true);
  assert.deepEqual(shown(view), [29, 49]);
  assert.equal(view.follow(2), true);
  assert.deepEqual(shown(view), [0, 20]);
});

test('marks of the time axis are round, and no more than fit', () => {
  for (const seconds of [0.05, 0.7, 3, 59, 61, 600, 3600, 40_000]) {
    const view = new TimeView(seconds);
    for (const most of [2, 4, 12]) {
      const {ticks} = view.ticks(most);
      assert.ok(ticks.length >= 1 && ticks.length <= most + 1, `${seconds} ${most}`);
    }
  }
  const view = new TimeView(100);
  view.set(61, 64);
  const {stepS, ticks} = view.ticks(4);
  assert.deepEqual(ticks.map((at) => STRINGS.moment(at, stepS)), ['1:01', '1:02', '1:03', '1:04']);
  view.set(61, 62);
  const fine = view.ticks(6);
  assert.deepEqual(fine.ticks.map((at) => STRINGS.moment(at, fine.stepS)),
    ['1:01.0', '1:01.2', '1:01.4', '1:01.6', '1:01.8', '1:02.0']);
});

test('moment is formatted as finely as its step', () => {
  assert.equal(STRINGS.moment(59.96, 0.1), '1:00.0');
  assert.equal(STRINGS.moment(3.14159, 0.01), '0:03.14');
  assert.equal(STRINGS.moment(75, 15), '1:15');
});
