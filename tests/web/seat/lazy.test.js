// A part that loads late: pushed early, it opens only after it is loaded.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {LazyPart} from '../../../web/seat/lazy.js';

console.warn = () => {};
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Fails so many times. @param {number} fails @param {() => void} [build] */
function late(fails, build = () => {}) {
  /** @type {string[]} */
  const did = [];
  /** @type {(() => void)[]} */
  const timers = [];
  /** @type {number[]} */
  const waits = [];
  const part = new LazyPart({
    load: async (tries) => {
      did.push(`load ${tries}`);
      if (tries < fails) throw new TypeError('no link');
    },
    use: () => {
      did.push('use');
      build();
    },
    late: () => did.push('late'), broken: () => did.push('broken'),
    after: (act, ms) => {
      timers.push(act);
      waits.push(ms);
    },
  });
  const push = () => part.push(() => did.push('open'));
  return {part, did, timers, waits, push};
}

test('first push loads and opens the part; later pushes only open it', async () => {
  const {did, push} = late(0);
  push();
  assert.deepEqual(did, ['load 0'], 'nothing opens before it is there');
  await settled();
  push();
  assert.deepEqual(did, ['load 0', 'use', 'open', 'open']);
});

test('prefetched part opens on a push without another load', async () => {
  const {part, did, push} = late(0);
  void part.fetch();
  push();
  await settled();
  assert.deepEqual(did, ['load 0', 'use', 'open']);
});

test('failed load is repeated, and the push is remembered', async () => {
  const {did, timers, push} = late(2);
  push();
  await settled();
  timers.shift()?.();
  await settled();
  timers.shift()?.();
  await settled();
  assert.deepEqual(did, ['load 0', 'late', 'load 1', 'late', 'load 2', 'use', 'open']);
  assert.equal(timers.length, 0);
});

test('second push during the load cancels the first', async () => {
  const {did, push} = late(0);
  push();
  push();
  await settled();
  assert.deepEqual(did, ['load 0', 'use']);
});

test('failing load is tried ten times with growing pauses, then on each push', async () => {
  const {did, timers, waits, push, part} = late(99);
  void part.fetch();
  await settled();
  while (timers.length) {
    timers.shift()?.();
    await settled();
  }
  assert.equal(did.length, 10);
  assert.deepEqual(waits, [2000, 4000, 6000, 8000, 10000, 12000, 14000, 16000, 18000]);
  push();
  await settled();
  push();
  await settled();
  assert.deepEqual(did.slice(10), ['load 10', 'late', 'load 11', 'late']);
});

test('push replaces the pending retry', async () => {
  const {did, timers, push, part} = late(3);
  void part.fetch();
  await settled();
  push();
  await settled();
  assert.deepEqual(did, ['load 0', 'load 1', 'late']);
  for (const act of timers.splice(0)) {
    act();
    await settled();
  }
  assert.deepEqual(did, ['load 0', 'load 1', 'late', 'load 2', 'late'], 'one retry, not two');
});

test('part that throws while it is built is built once, and a push reports it', async () => {
  const {did, timers, push, part} = late(0, () => {
    throw new Error('no #menu in the page');
  });
  await assert.rejects(part.fetch(), /no #menu/);
  push();
  await settled();
  assert.deepEqual(did, ['load 0', 'use', 'broken']);
  assert.equal(timers.length, 0);
});
