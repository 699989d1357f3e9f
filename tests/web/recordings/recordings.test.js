// The recordings page without a browser: drives out of files, lines, spans.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {textOf} from '../english.js';
import {driversText} from '../../../web/recordings/list/filter.js';
import {Refused} from '../../../web/lib/http.js';
import {API} from '../../../web/recordings/api.js';
import {carOf, clipped, driveNamed, marksOf, named, queryOf} from '../../../web/recordings/drives.js';
import {
  angleAt, axis, extent, joinLines, lastUpTo, linePath, valueAt,
} from '../../../web/recordings/plots/lines.js';
import {STRINGS} from '../../../web/recordings/strings.js';
import {UnitCache, SPAN_S, unitsOf} from '../../../web/recordings/player/units.js';
import {driveOfFiles, file, START_MS} from './files.js';

/** @import {Series} from '../../../web/recordings/types.js' */

// --- drives ---

test('files have their place in a drive that begins and ends within them', () => {
  const drive = driveOfFiles(
    file('a', 0, {from_s: 40, marks: [{t: 50, text: 'here'}]}), file('b', 60, {to_s: 30}),
  );
  assert.deepEqual(drive.parts.map(({startS, endS}) => [startS, endS]), [[-40, 20], [20, 80]]);
  assert.equal(drive.seconds, 50);
  assert.deepEqual(marksOf(drive), [{t: 10, text: 'here'}]);
});

test('address names a drive by its id or by one of its files', () => {
  const [first, second] = [
    driveOfFiles(file('a.mcap', 0), file('b.mcap', 60, {to_s: 10})),
    driveOfFiles(file('b.mcap', 60, {from_s: 45}), file('c.mcap.part', 120)),
  ];
  const drives = [second, first];
  for (const [name, found] of /** @type {const} */ ([
    ['b.mcap@45', second], ['a.mcap', first], ['c.mcap', second], ['d.mcap', null],
  ])) assert.equal(driveNamed(drives, name), found, name);
});

test('car of a drive comes from the names of its files', () => {
  for (const [name, car] of [
    ['Plague-20251121T200000Z-0001.mcap', 'Plague'],
    ['my-car-2-20251121T200000Z-0001.mcap.part', 'my-car-2'],
    ['holiday.mcap', ''],
    ['20251121T200000Z-0001.mcap', ''],
  ]) assert.equal(carOf(/** @type {any} */ ({parts: [{name}]})), car);
});

test('measurements of a file are clipped to the drive', () => {
  const [part] = driveOfFiles(file('a', 0, {from_s: 10, to_s: 20})).parts;
  const line = {group: 'range', name: 'front', unit: 'm'};
  const table = clipped({
    start_ms: START_MS, seconds: 60, marks: [],
    series: [{...line, t: [0, 10, 15, 21], v: [1, 2, null, 4]}],
    reasons: [{t: 0, reason: 'nobody'}, {t: 8, reason: 'neutral'}, {t: 12, reason: 'driving'}],
    gaps: [{t: 5, words: textOf('a')}, {t: 15, words: textOf('b')}],
  }, part);
  assert.deepEqual(table.series, [{...line, t: [10, 15], v: [2, null]}]);
  assert.deepEqual(table.reasons, [{t: 10, reason: 'neutral'}, {t: 12, reason: 'driving'}]);
  assert.deepEqual(table.gaps, [{t: 15, words: textOf('b')}]);
});

test('servo keeps its angle from before the drive, and across gaps', () => {
  const [part] = driveOfFiles(file('a', 0, {from_s: 10, to_s: 20})).parts;
  const line = {group: 'angle', name: 'pan', unit: '°'};
  const {series: [turned]} = clipped({
    start_ms: START_MS, seconds: 60, marks: [], reasons: [], gaps: [],
    series: [{...line, t: [0, 4, 15, 21], v: [0, 30, -20, 5]}],
  }, part);
  assert.deepEqual(turned, {...line, t: [10, 15], v: [30, -20]});
  const angles = {t: [2, 5, 5, 9], v: [30, 40, null, -20]};
  assert.deepEqual([0, 2, 4, 7, 9].map((atS) => angleAt(angles, atS)), [30, 30, 30, 40, -20]);
  assert.equal(angleAt({t: [], v: []}, 1), null);
});

test('filters become the query to the car', () => {
  const all = {driver: '', parked: false, day: '', text: ' '};
  const asked = (/** @type {Partial<import('../../../web/recordings/types.js').DriveQuery>} */ more, causes = /** @type {string[]} */ ([])) =>
    String(queryOf({...all, ...more}, 50, causes));
  assert.equal(asked({}), 'most=50&wheel=driven');
  assert.equal(asked({driver: 'Ann B'}), 'most=50&wheel=driven&driver=Ann+B');
  assert.equal(asked({driver: 'Ann', parked: true}), 'most=50&wheel=parked');
  assert.equal(asked({text: ' stop '}, ['estop']), 'most=50&wheel=driven&text=stop&cause=estop');
  assert.equal(String(queryOf(all, 50, [], 1000)), 'most=50&before=1000&wheel=driven');
  const day = new URLSearchParams(asked({day: '2026-03-29'}));
  assert.equal(Number(day.get('since')), new Date(2026, 2, 29).getTime());
  assert.equal(Number(day.get('until')), new Date(2026, 2, 30).getTime());
  assert.match(asked({day: '0001-01-01'}), /since=0&until=0$/);
});

test('list shows stops with their causes, and finds causes by their words', () => {
  assert.equal(STRINGS.stops({}), '');
  assert.equal(STRINGS.stops({estop: 2, odd: 1}), '3 stops: 2× STOP pressed, odd');
  assert.deepEqual(STRINGS.causes('STOP p'), ['estop', 'estop_grown_up']);
  assert.ok(STRINGS.causes('stop').length > STRINGS.causes('stopped').length, 'all of them');
  assert.deepEqual([3.4, 1260].map(STRINGS.metres), ['≈\u00a03\u00a0m', '≈\u00a01.3\u00a0km']);
  assert.match(STRINGS.sure(2, '4\u00a0MB', 1), /^2 files \(4\u00a0MB\) will be deleted for good\. 1 file also belongs/);
  assert.match(STRINGS.sure(0, '0 B', 2), /^2 files also belong to another drive and stay/);
});

test('address names a file, and a malformed address none', () => {
  assert.equal(named('#Plague-20251121T200000Z-0001.mcap'), 'Plague-20251121T200000Z-0001.mcap');
  assert.equal(named('#a%20b'), 'a b');
  for (const hash of ['', '#', '#%', '#%E0%A4%A', '#a%']) assert.equal(named(hash), '', hash);
});

test('permanent refusals and temporary errors are told apart', async () => {
  const real = globalThis.fetch;
  try {
    for (const [status, final] of /** @type {[number, boolean][]} */ ([
      [404, true], [422, true], [401, false], [409, false], [429, false], [500, false],
    ])) {
      const headers = {'Content-Type': 'application/problem+json; charset=utf-8'};
      globalThis.fetch = async () => Response.json({title: 'Why.', text: textOf('Why.')}, {status, headers});
      await assert.rejects(API.table('x', 2), (fault) => fault instanceof Refused
        && fault.final === final && fault.locked === (status === 401) && fault.message === 'Why');
    }
  } finally {
    globalThis.fetch = real;
  }
});

// --- lines ---

test('moment has the last value before it', () => {
  assert.deepEqual([-1, 0, 0.5, 3, 9].map((at) => lastUpTo([0, 1, 3], at)), [-1, 0, 0, 2, 2]);
  const line = {t: [0, 1, 2], v: [5, null, 7]};
  assert.deepEqual([-1, 0, 1.5, 2].map((at) => valueAt(line, at)), [null, 5, null, 7]);
  assert.deepEqual(extent([3, null, -1]), {low: -1, high: 3});
  assert.equal(extent([null]), null);
});

test('axis has round ends that enclose the values', () => {
  assert.deepEqual(axis({low: 0.3, high: 1.7}, true), {low: 0, high: 2});
  const volts = axis({low: 7.31, high: 7.42}, false);
  assert.deepEqual([volts.low.toFixed(3), volts.high.toFixed(3)], ['7.300', '7.500']);
  for (const [low, high] of [[0, 0], [5, 5], [-3, 0.2], [0.001, 12345]]) {
    const found = axis({low, high}, false);
    assert.ok(found.low <= low && found.high >= high && found.high > found.low, `${low}`);
  }
});

test('line becomes a path, and null breaks it', () => {
  const box = {fromS: 0, toS: 4, low: 0, high: 2, width: 100, height: 10};
  assert.equal(linePath({t: [0, 1, 2, 3, 4], v: [0, 1, null, 2, 5]}, box),
    'M0 10h.1L25 5M75 0h.1L100 0');
  assert.equal(linePath({t: [], v: []}, box), '');
});

test('parts of a drive make one line, broken where nothing was recorded', () => {
  /** @type {Map<string, Series>} */
  const lines = new Map();
  const series = (/** @type {number[]} */ t) => [{group: 'range', name: 'front', unit: 'm', t, v: t}];
  joinLines(lines, series([0, 1]), 0, 0.1);
  joinLines(lines, series([0.5, 1]), 1, 0.1);
  joinLines(lines, series([0, 1]), 60, 0.1);
  const line = lines.get('range/front');
  assert.deepEqual(line?.t, [0, 1, 1.5, 2, 2, 60, 61]);
  assert.deepEqual(line?.v, [0, 1, 0.5, 1, null, 0, 1]);
});

test('lengths, sizes and values are formatted', () => {
  assert.equal(STRINGS.length(3725.9), '1:02:05');
  assert.equal(STRINGS.length(65), '1:05');
  assert.deepEqual([5, 999, 1500, 15_300_000].map(STRINGS.size), ['5\u00a0bytes', '999\u00a0bytes', '1.5\u00a0kB', '15\u00a0MB']);
  assert.equal(STRINGS.spoken(61), '1\u00a0minute 1\u00a0second');
  assert.equal(STRINGS.value(null, 'm'), '–');
  assert.equal(STRINGS.value(13.4, 'ms'), '13\u00a0ms');
});

// --- spans ---

const FRAME_S = 1 / 30;

/** An answer of the car: units from `fromS` on, a key frame every third. */
function body(/** @type {number} */ fromS, /** @type {number} */ seconds, /** @type {number} */ startMs) {
  const count = Math.round(seconds / FRAME_S);
  const bytes = new Uint8Array(count * 23);
  const view = new DataView(bytes.buffer);
  for (let index = 0; index < count; index += 1) {
    const at = index * 23;
    const us = Math.round(startMs * 1000 + (fromS + index * FRAME_S) * 1e6);
    bytes.set([1, 1, index % 3 === 0 ? 1 : 0], at);
    view.setUint32(at + 8, us % 2 ** 32, true);
    view.setUint32(at + 12, Math.floor(us / 2 ** 32), true);
    view.setUint32(at + 16, 3, true);
    bytes.set([7, 8, 9], at + 20);
  }
  return bytes.buffer;
}

test('answer is split into its units', () => {
  const units = unitsOf(body(2, 0.2, START_MS), START_MS);
  assert.equal(units.length, 6);
  assert.deepEqual(units.map(({key}) => key), [true, false, false, true, false, false]);
  assert.ok(Math.abs(units[5].timeS - (2 + 5 * FRAME_S)) < 1e-5);
  assert.deepEqual([...units[1].unit], [7, 8, 9]);
  assert.throws(() => unitsOf(body(2, 0.2, START_MS).slice(0, 60), START_MS), /video frame/);
});

/** A cache of two files whose answers are let through by hand. */
function cache() {
  const drive = driveOfFiles(file('a', 0, {seconds: 20}), file('b', 20.5, {seconds: 5}));
  /** @type {{name: string, fromS: number, seconds: number, answer: (fault?: Error) => Promise<void>}[]} */
  const asked = [];
  /** @type {string[]} */
  const faults = [];
  const clock = {ms: 0};
  const made = new UnitCache(drive, {
    fetch: (name, fromS, seconds) => new Promise((resolve, reject) => {
      const startMs = drive.parts.find((part) => part.name === name)?.start_ms ?? 0;
      asked.push({name, fromS, seconds, answer: async (fault) => {
        if (fault) reject(fault);
        else resolve(body(fromS, seconds, startMs));
        await new Promise((done) => setImmediate(done));
      }});
    }),
    failed: (fault) => faults.push(fault),
    nowMs: () => clock.ms,
  });
  return {drive, made, asked, faults, clock};
}

test('span is requested once, and is available when it arrives', async () => {
  const {made, asked} = cache();
  assert.equal(made.at(1), null);
  assert.equal(made.at(2), null);
  assert.deepEqual(asked.map(({name, fromS, seconds}) => [name, fromS, seconds]), [['a', 0, SPAN_S]]);
  await asked[0].answer();
  const span = made.at(1);
  assert.ok(span);
  assert.deepEqual([span.loS, span.hiS], [0, SPAN_S]);
  made.prefetch(span);
  assert.deepEqual([asked[1].name, asked[1].fromS], ['a', SPAN_S]);
});

test('last span of a file reaches to the next file, the very last without end', async () => {
  const {made, asked} = cache();
  made.at(20.2);
  await asked[0].answer();
  assert.deepEqual([asked[0].name, asked[0].fromS], ['a', 16]);
  assert.equal(made.at(20.2)?.hiS, 20.5);
  made.at(99);
  await asked[1].answer();
  assert.deepEqual([asked[1].name, asked[1].fromS], ['b', 0]);
  assert.equal(made.at(99)?.hiS, Infinity);
  assert.ok(Math.abs((made.at(99)?.units[0].timeS ?? 0) - 20.5) < 1e-4);
});

test('failed request is repeated after a second', async () => {
  const {made, asked, faults, clock} = cache();
  made.at(0);
  await asked[0].answer(new Error('no link'));
  assert.deepEqual(faults, ['no link']);
  made.at(0);
  assert.equal(asked.length, 1);
  clock.ms = 1001;
  made.at(0);
  assert.equal(asked.length, 2);
});

test('cache keeps only the spans used last', async () => {
  const drive = driveOfFiles(file('a', 0, {seconds: 200}));
  const made = new UnitCache(drive, {
    fetch: async (_, fromS) => body(fromS, 0.1, START_MS), failed: () => undefined,
  });
  for (let timeS = 0; timeS < 160; timeS += SPAN_S) {
    made.at(timeS);
    await new Promise((done) => setImmediate(done));
    made.at(0);
    await new Promise((done) => setImmediate(done));
  }
  assert.equal(made.loaded.size, 6);
  assert.ok(made.at(0), 'used all the time');
});

test('drivers without a name are listed only if there is no other', () => {
  assert.equal(driversText(['somebody', 'Ann', 'Bo']), 'Ann, Bo');
  assert.equal(driversText(['somebody']), 'Someone');
  assert.equal(driversText([]), '');
});
