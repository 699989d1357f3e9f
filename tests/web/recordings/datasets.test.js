// Requests of datasets, their names, and the drives that can be in one.

import assert from 'node:assert/strict';
import test from 'node:test';
import '../english.js';
import {isUsable} from '../../../web/recordings/drives.js';
import {freeName, requestOf} from '../../../web/recordings/list/datasets.js';

const DAY_MS = Date.UTC(2026, 10, 30, 8);

/** @param {Record<string, unknown>} [more] @returns {any} */
const drive = (more = {}) => ({
  id: 'a', startMs: 1000.5, seconds: 60, parked: false, state: 'closed', archive: null,
  parts: [{name: 'a-0001.mcap', pictures: 30}, {name: 'a-0002.mcap', pictures: 0}], ...more,
});

/** @param {Record<string, string>} values */
function form(values) {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) data.set(name, value);
  return data;
}

test('request has the files and the time of each drive', () => {
  const usual = {name: 'laps', kind: 'lerobot', episodes: 'drivers', size: '', fps: '0'};
  assert.deepEqual(requestOf(form(usual), [drive()]), {
    name: 'laps', kind: 'lerobot', fps: 0, width: 0, height: 0, copy: true, marks: false,
    drives: [{files: ['a-0001.mcap', 'a-0002.mcap'], from_ms: 1000.5, to_ms: 61000.5}],
  });
});

test('request has the choices of the form', () => {
  const choices = {name: 'tub', kind: 'donkey', episodes: 'marks', size: '160x120', fps: '20', encode: 'on'};
  const {kind, fps, width, height, copy, marks} = requestOf(form(choices), []);
  assert.deepEqual({kind, fps, width, height, copy, marks},
    {kind: 'donkey', fps: 20, width: 160, height: 120, copy: false, marks: true});
});

test('suggested name is that of no other dataset', () => {
  const taken = (/** @type {string[]} */ ...names) => /** @type {any[]} */ (names.map((name) => ({name})));
  assert.equal(freeName('lerobot', DAY_MS, []), 'lerobot-2026-11-30');
  assert.equal(freeName('lerobot', DAY_MS, taken('lerobot-2026-11-30')), 'lerobot-2026-11-30-2');
  const both = taken('donkey-2026-11-30', 'donkey-2026-11-30-2');
  assert.equal(freeName('donkey', DAY_MS, both), 'donkey-2026-11-30-3');
});

test('only a whole drive here, with pictures and a driver, can be ticked', () => {
  assert.ok(isUsable(drive()));
  assert.ok(!isUsable(drive({parked: true})));
  assert.ok(!isUsable(drive({state: 'open'})));
  assert.ok(!isUsable(drive({parts: [{name: 'a', pictures: 0}]})));
  assert.ok(!isUsable(drive({archive: {place: 'b', tier: 'away', whole: true, verified_s: 0}, copies: []})));
});
