// The contact sheet's requests, and the figures of a base station.

import assert from 'node:assert/strict';
import test from 'node:test';
import {textOf} from '../english.js';
import {framesOf, stretchesOf} from '../../../web/recordings/player/sheet.js';
import {STATION_STRINGS} from '../../../web/recordings/list/station-strings.js';

/** @param {object} fields */
const part = (fields) => ({
  name: 'a', pictures: 1, startS: 0, from_s: 0, to_s: 60, ...fields,
});

test('request covers at most a minute of one file', () => {
  const drive = /** @type {any} */ ({parts: [
    part({to_s: 130}), part({name: 'dark', pictures: 0}), part({name: 'b', from_s: 5, startS: 130}),
  ]});
  const found = stretchesOf(drive).map(({part: {name}, fromS, seconds, atS}) =>
    [name, fromS, seconds, atS]);
  assert.deepEqual(found, [
    ['a', 0, 60, 0], ['a', 60, 60, 60], ['a', 120, 10, 120], ['b', 5, 55, 135],
  ]);
});

test('answer without pictures has no frames', () => {
  assert.deepEqual(framesOf(new ArrayBuffer(0)), []);
});

test('waiting files are shown with rate and time left', () => {
  const car = /** @type {any} */ ({state: textOf('fetching'), waiting: 2, waiting_bytes: 32e6, late: {}});
  assert.equal(STATION_STRINGS.car({...car, rate: 4e6}),
    'fetching: 2 files pending, 32\u00a0MB, 4.0\u00a0MB/s, 8\u00a0seconds to go');
  assert.equal(STATION_STRINGS.car({...car, rate: 0}), 'fetching: 2 files pending, 32\u00a0MB');
  assert.equal(STATION_STRINGS.car({...car, waiting: 0, state: null}), 'all recordings fetched');
  const store = {
    path: '/store', sessions: 1, segments: 2, bytes: 3e6, free: 1e9, total: 2e9, archived: 0,
    archived_bytes: 0,
  };
  const here = '/store: 1 session in 2 files, 3.0\u00a0MB. 1.0\u00a0GB of 2.0\u00a0GB are free.';
  assert.equal(STATION_STRINGS.store(store), here);
  assert.equal(STATION_STRINGS.store({...store, archived: 2, archived_bytes: 9e6}),
    `${here} Archived: 2 sessions, 9.0\u00a0MB.`);
  const remote = {
    ...car, rate: 4e6, state: textOf('sending'), last_fault: textOf('full'), fault_s: 1e9, oldest_s: 0,
    complete: 12, waiting: 28, waits_until: '',
  };
  assert.equal(STATION_STRINGS.remote(remote),
    'sending: 12 of 40 sessions copied, 32\u00a0MB, 4.0\u00a0MB/s, 8\u00a0seconds to go');
  const night = {...remote, state: null, rate: 0, waiting_bytes: 3e9, waits_until: '22:00'};
  assert.equal(STATION_STRINGS.remote(night), 'waits until 22:00: 12 of 40 sessions copied, 3.0\u00a0GB');
  assert.equal(STATION_STRINGS.remote({...night, state: textOf('its disk is full')}),
    'its disk is full: 12 of 40 sessions copied, 3.0\u00a0GB');
  const old = {...remote, waiting: 0, state: null, oldest_s: Date.now() / 1000 - 3 * 86_400};
  assert.equal(STATION_STRINGS.remote(old), 'all recordings copied, oldest copy verified 3 days ago');
  assert.match(STATION_STRINGS.fault(remote), /2001.*: full/);
  assert.equal(STATION_STRINGS.fault({...remote, state: textOf('full')}), '');
});
