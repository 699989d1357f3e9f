// A part that loads late: pushed early, it opens once it is loaded, and only then.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {LazyPart} from '../../../web/seat/lazy.js';

console.warn = () => {};
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Fails so many times. @param {number} fails */
function late(fails) {
  /** @type {string[]} */
  const did = [];
  /** @type {(() => void)[]} */
  const timers = [];
  const part = new LazyPart({
    load: async (tries) => {
      did.push(`load ${tries}`);
      if (tries < fails) throw new TypeError('no link');
    },
    late: () => did.push('late'),
    after: (act) => timers.push(act),
  });
  const push = () => part.push(() => did.push('open'));
  return {part, did, timers, push};
}

test('the first push brings it and opens it; later ones only act', async () => {
  const {did, push} = late(0);
  push();
  assert.deepEqual(did, ['load 0'], 'nothing opens before it is there');
  await settled();
  push();
  assert.deepEqual(did, ['load 0', 'open', 'open']);
});

test('fetched ahead it opens at the push, without another load', async () => {
  const {part, did, push} = late(0);
  void part.fetch();
  push();
  await settled();
  assert.deepEqual(did, ['load 0', 'open']);
});

test('what did not come is asked for again, and the push is remembered', async () => {
  const {did, timers, push} = late(2);
  push();
  await settled();
  timers.shift()?.();
  await settled();
  timers.shift()?.();
  await settled();
  assert.deepEqual(did, ['load 0', 'late', 'load 1', 'late', 'load 2', 'open']);
  assert.equal(timers.length, 0);
});

test('a second push while it is absent takes the first back', async () => {
  const {did, push} = late(0);
  push();
  push();
  await settled();
  assert.deepEqual(did, ['load 0']);
});
