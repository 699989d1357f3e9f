// Two connections, one picture: any interleaving of their ordered frames.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Merge} from '../../../web/video/merge.js';

const UNITS = 40;
const RUNS = 2000;

/** @param {number} sequence @param {boolean} [key] */
function frame(sequence, key = false) {
  const bytes = new ArrayBuffer(21);
  const view = new DataView(bytes);
  view.setUint8(2, Number(key));
  view.setUint32(4, sequence, true);
  return bytes;
}

/** @param {ArrayBuffer[]} frames */
const numbers = (frames) => frames.map((one) => new DataView(one).getUint32(4, true));

/** @param {ArrayBuffer} one */
const isKey = (one) => new DataView(one).getUint8(2) === 1;

/** mulberry32: a small generator with a seed. @param {number} seed */
function dice(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function two() {
  const merge = new Merge();
  merge.both = true;
  return merge;
}

test('first arrival of a unit counts, its copy is dropped', () => {
  const merge = two();
  assert.deepEqual(numbers(merge.take(frame(7, true), 1)), [7]);
  assert.deepEqual(numbers(merge.take(frame(7, true), 0)), []);
  assert.deepEqual(numbers(merge.take(frame(8), 0)), [8]);
  assert.deepEqual(numbers(merge.take(frame(8), 1)), []);
});

test('unit waits for the missing unit before it, and both come in order', () => {
  const merge = two();
  merge.take(frame(1, true), 0);
  assert.deepEqual(merge.take(frame(3), 1), []);
  assert.deepEqual(merge.take(frame(4), 1), []);
  assert.deepEqual(numbers(merge.take(frame(2), 0)), [2, 3, 4]);
  assert.equal(merge.held.size, 0);
});

test('key frame does not wait, and older units are dropped', () => {
  const merge = two();
  merge.take(frame(1, true), 0);
  merge.take(frame(3), 1);
  merge.take(frame(6), 1);
  assert.deepEqual(numbers(merge.take(frame(5, true), 0)), [5, 6]);
  assert.deepEqual(merge.take(frame(4), 0), []);
  assert.equal(merge.held.size, 0);
});

test('gap that both connections have passed is skipped at once', () => {
  const merge = two();
  merge.take(frame(1, true), 0);
  assert.deepEqual(merge.take(frame(3), 0), []);
  assert.deepEqual(numbers(merge.take(frame(4), 1)), [3, 4]);
  assert.deepEqual(numbers(merge.take(frame(5), 0)), [5]);
});

test('merge: unit missing for a second is given up', () => {
  const merge = two();
  merge.take(frame(1, true), 0);
  let shown = 0;
  for (let at = 3; shown === 0; at += 1) {
    shown = merge.take(frame(at), 1).length;
    assert.ok(at < 40);
  }
  assert.ok(shown > 25, 'the other connection brings a late unit in time');
});

test('single connection passes all units on at once, despite a gap', () => {
  const merge = new Merge();
  assert.deepEqual(numbers(merge.take(frame(5), 0)), [5]);
  assert.deepEqual(numbers(merge.take(frame(6), 0)), [6]);
  assert.deepEqual(numbers(merge.take(frame(9), 0)), [9]);
  assert.deepEqual(merge.take(new ArrayBuffer(3), 0).length, 1, 'for the reader to refuse');
});

test('sequence numbers wrap around', () => {
  const merge = two();
  assert.deepEqual(numbers(merge.take(frame(2 ** 32 - 1, true), 0)), [2 ** 32 - 1]);
  assert.deepEqual(merge.take(frame(1), 0), []);
  assert.deepEqual(numbers(merge.take(frame(0), 1)), [0, 1]);
});

test('interleaved frames give units in order, once, complete except before a key frame', () => {
  for (let run = 0; run < RUNS; run += 1) {
    const roll = dice(run);
    const first = run % 2 ? 2 ** 32 - 20 : 1000;
    const whole = roll() < 0.5; // each unit is sent by both, or by at least one of them
    const units = Array.from({length: UNITS}, (_, at) =>
      frame((first + at) >>> 0, at === 0 || roll() < 0.08));
    const sent = [0, 1].map((way) => units.filter((_, at) =>
      whole || roll() < (at < 1 || way === at % 2 ? 1 : 0.5)));
    const merge = two();
    /** @type {ArrayBuffer[]} */
    const shown = [];
    const at = [0, 0];
    while (at[0] < sent[0].length || at[1] < sent[1].length) {
      let way = /** @type {0 | 1} */ (Number(roll() < 0.5));
      if (at[way] === sent[way].length) way = way === 0 ? 1 : 0;
      // Never further apart than the queue: then no unit is given up.
      const ahead = units.indexOf(sent[way][at[way]]) - (units.indexOf(sent[1 - way][at[1 - way]]) >>> 0);
      if (ahead > 6 && at[1 - way] < sent[1 - way].length) way = way === 0 ? 1 : 0;
      shown.push(...merge.take(sent[way][at[way]], way));
      at[way] += 1;
    }
    const order = shown.map((one) => units.indexOf(one));
    for (let i = 1; i < order.length; i += 1) {
      assert.ok(order[i] > order[i - 1], `run ${run}: ${order}`);
      assert.ok(order[i] === order[i - 1] + 1 || isKey(shown[i]), `run ${run}: ${order}`);
    }
    assert.equal(order.at(-1), UNITS - 1, `run ${run}`);
  }
});
