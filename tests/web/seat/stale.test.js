// A queue in front of a page that is too slow: its age is bounded by a new connection.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {StaleQueue, captureUs} from '../../../web/seat/link/stale.js';

test('stale queue: young pictures or an unknown clock keep the connection', () => {
  const queue = new StaleQueue();
  assert.equal(queue.arrived(null, 5, 0), false);
  assert.equal(queue.arrived(2000, 5, 0), false);
  assert.equal(queue.arrived(2900, 500, 0), false, 'a long way');
});

test('stale queue: old picture requests one new connection', () => {
  const queue = new StaleQueue();
  assert.equal(queue.arrived(2100, 5, 1000), true);
  for (let ms = 1033; ms < 4000; ms += 33) assert.equal(queue.arrived(9000, 5, ms), false);
  assert.equal(queue.arrived(2100, 5, 4033), true, 'the page has fallen behind again');
});

test('stale queue: reconnects become rarer if they do not help', () => {
  const queue = new StaleQueue();
  const at = [];
  for (let ms = 0; ms < 300_000; ms += 33) if (queue.arrived(5000, 5, ms)) at.push(ms);
  assert.ok(at.length < 12, `${at.length} connections`);
  for (let ms = 300_000; ms < 400_000; ms += 33) queue.arrived(50, 5, ms);
  assert.equal(queue.arrived(5000, 5, 400_000), true);
  assert.equal(queue.arrived(5000, 5, 403_033), true);
});

test('stale queue: capture time is read from the header', () => {
  const frame = new ArrayBuffer(20);
  new DataView(frame).setBigUint64(8, 5_000_000_123n, true);
  assert.equal(captureUs(frame), 5_000_000_123);
  assert.equal(captureUs(new ArrayBuffer(15)), null);
});
