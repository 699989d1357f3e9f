// Moments of a base station without a browser: conditions, links, CSV, lines of weeks.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {Refused} from '../../../web/lib/http.js';
import {API} from '../../../web/recordings/api.js';
import {addressOf, momentIn, named} from '../../../web/recordings/drives.js';
import {conditionsOf, csvOf} from '../../../web/recordings/list/moments.js';
import {linesOf} from '../../../web/recordings/plots/weeks.js';
import {STRINGS} from '../../../web/recordings/strings.js';

/** @import {Moment, WeekRow} from '../../../web/recordings/types.js' */

const ID = 'Plague-20251121T200000Z-0001@40';

/** @param {Partial<Moment>} more @returns {Moment} */
const moment = (more) => ({
  session: 'Plague/2025-11-21/Plague-20251121T200000Z', cause: null, driver: 'Ann', drive: ID,
  start_ms: 1_763_755_203_250, seconds: 1.1, worst: {front_m: 0.2}, at_s: 3.25,
  file: 'Plague-20251121T200000Z-0001.mcap', file_ms: 1_763_755_200_000, ...more,
});

test('address of a moment names its drive and its second', () => {
  for (const [atS, text] of /** @type {const} */ ([[3.25, '3.3'], [-0.4, '0.0'], [7200, '7200.0']])) {
    const hash = addressOf(ID, atS);
    assert.equal(hash, `#Plague-20251121T200000Z-0001%4040&at=${text}`);
    assert.equal(named(hash), ID);
    assert.equal(momentIn(hash), Number(text));
  }
  assert.equal(named(addressOf('a&at=1', 2)), 'a&at=1');
  for (const hash of ['', '#a', '#a&at=', '#a&at=x', '#a&at=-1', '#a&at=1e9&b']) assert.equal(momentIn(hash), null);
});

test('conditions are the filled fields, and per cent become a share', () => {
  const fields = /** @type {[string, unknown][]} */ ([
    ['front_below_m', '0.3'], ['throttle_above_share', '50'], ['battery_below_v', ''],
    ['stop', ''], ['driver', 'Ann & Bob'], ['month', '2026-11'],
  ]);
  assert.equal(String(conditionsOf(fields)),
    'front_below_m=0.3&throttle_above_share=0.5&driver=Ann+%26+Bob&month=2026-11');
  assert.equal(String(conditionsOf([['stop', '']])), '');
});

test('CSV quotes names and has a link a second before each moment', () => {
  const gone = moment({drive: '', driver: 'Ann, "the\nDriver"', cause: 'blind', worst: {}});
  const [head, first, ...rest] = csvOf([moment({}), gone], 'http://station:8100/?path=mse#old').split('\r\n');
  assert.equal(head, 'time,seconds,session,driver,cause,front_m,throttle_share,battery_v,picture_ms,link');
  assert.equal(first, '2025-11-21T20:00:03.250Z,1.1,Plague/2025-11-21/Plague-20251121T200000Z,Ann,,0.2,,,,'
    + 'http://station:8100/?path=mse#Plague-20251121T200000Z-0001%4040&at=2.3');
  assert.equal(rest.join('\r\n'), '2025-11-21T20:00:03.250Z,1.1,Plague/2025-11-21/Plague-20251121T200000Z,'
    + '"Ann, ""the\nDriver""",blind,,,,,\r\n');
});

test('number of moments says when there are more', () => {
  assert.equal(STRINGS.moments(1, false), '1 moment');
  assert.equal(STRINGS.moments(500, true), 'The newest 500 moments. Choose a month to see others.');
  assert.deepEqual([0, 1.1, 59.96, 61].map(STRINGS.duration), ['', '1.1\u00a0sec', '60.0\u00a0sec', '1:01']);
});

test('lines of a plot are those of its rows', () => {
  /** @type {WeekRow[]} */
  const rows = [['battery', 'A', 0, 7], ['stops', 'A', 0, 1], ['stops', 'A', 604_800_000, 2], ['stops', 'B', 0, 3]];
  assert.deepEqual([...linesOf(rows, 'stops')], [['A', {t: [0, 604_800], v: [1, 2]}], ['B', {t: [0], v: [3]}]]);
  assert.deepEqual([...linesOf(rows, 'latency')], []);
});

test('search that took too long is told apart', async (context) => {
  for (const status of [408, 400]) {
    context.mock.method(globalThis, 'fetch', async () => new Response('', {status}));
    await assert.rejects(API.moments(new URLSearchParams()), {constructor: Refused, status, message: `error ${status}`});
  }
});
