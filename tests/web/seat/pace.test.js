// Comparison of decoding speed with the rate of pictures, from counts and seconds.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {paceText} from '../../../web/seat/drawer/drawer-strings.js';
import {Pace} from '../../../web/seat/link/pace.js';

/** Feeds seconds of [units, pictures, refused]; returns the answers. @param {number[][]} seconds */
function answers(seconds, everyMs = 1000) {
  const pace = new Pace();
  const counts = {fed: 0, decoded: 0, refused: 0};
  pace.second(counts, 0);
  return seconds.map(([fed, decoded, refused], index) => {
    counts.fed += fed;
    counts.decoded += decoded;
    counts.refused += refused;
    return pace.second({...counts}, (index + 1) * everyMs);
  });
}

/** @param {number} count @param {number[]} second */
const times = (count, second) => new Array(count).fill(second);
const GOOD = [30, 30, 0];
const HALF = [30, 15, 0];

test('device that keeps up is never reported as slow', () => {
  assert.ok(!answers(times(60, GOOD)).includes(true));
  assert.ok(!answers(times(60, [30, 20, 0])).includes(true), 'some paints are skipped');
});

test('half the pictures for six seconds are reported as slow, for five not', () => {
  assert.deepEqual(answers(times(7, HALF)), [false, false, false, false, false, true, true]);
  assert.ok(!answers([...times(5, HALF), ...times(20, GOOD)]).includes(true));
});

test('short busy moments are not reported', () => {
  const moments = [...times(3, HALF), ...times(3, GOOD)];
  assert.ok(!answers([...moments, ...moments, ...moments, ...moments]).includes(true));
});

test('decoder with repeated queue overruns is slow, whatever it shows', () => {
  const overran = [25, 20, 1];
  assert.equal(answers(times(6, overran)).at(-1), true);
});

test('five good seconds clear the report, four do not', () => {
  const said = answers([...times(8, HALF), ...times(4, GOOD), GOOD]);
  assert.deepEqual(said.slice(-2), [true, false]);
});

test('sleep of the page or pause of the camera restarts the measurement', () => {
  assert.ok(!answers(times(20, HALF), 1700).includes(true), 'timers that come late');
  assert.ok(!answers(times(20, [9, 0, 0])).includes(true), 'hardly a picture comes');
  assert.equal(answers([...times(8, HALF), [0, 0, 0]]).at(-1), false);
});

test('message has the decoding time and the advice for this address', () => {
  const pace = new Pace();
  pace.second({fed: 0, decoded: 0, refused: 0}, 0);
  pace.second({fed: 30, decoded: 15, refused: 0}, 990);
  const plain = paceText(pace, false);
  assert.match(plain, /too slow.*every 33\u00a0ms.*66\u00a0ms/s);
  assert.match(plain, /https/);
  assert.match(paceText(pace, true), /another browser.*smaller picture/s);
  assert.doesNotMatch(paceText(pace, true), /https/);
});
