import assert from 'node:assert/strict';
import {test} from 'node:test';

import {HOLD_MS, Hold} from '../../../web/buttons/hold.js';

class Element extends EventTarget {
  /** @type {Record<string, string>} */
  dataset = {};
}

/** @param {import('node:test').TestContext} context */
function held(context) {
  context.mock.timers.enable({apis: ['setTimeout']});
  const element = new Element();
  const acts = {count: 0};
  new Hold(/** @type {any} */ (element), () => (acts.count += 1));
  /** @param {string} name */
  const send = (name) => element.dispatchEvent(new Event(name, {cancelable: true}));
  return {element, acts, send, pass: (/** @type {number} */ ms) => context.mock.timers.tick(ms)};
}

test('long push acts once', (context) => {
  const {element, acts, send, pass} = held(context);
  send('pointerdown');
  assert.equal(element.dataset.held, '');
  pass(HOLD_MS - 1);
  assert.equal(acts.count, 0);
  pass(1);
  assert.equal(acts.count, 1);
  assert.equal('held' in element.dataset, false);
  pass(10 * HOLD_MS);
  assert.equal(acts.count, 1);
});

for (const end of ['pointerup', 'pointercancel', 'pointerleave', 'blur']) {
  test(`push that ends by ${end} does not act`, (context) => {
    const {element, acts, send, pass} = held(context);
    send('pointerdown');
    pass(HOLD_MS / 2);
    send(end);
    assert.equal('held' in element.dataset, false);
    pass(10 * HOLD_MS);
    assert.equal(acts.count, 0);
  });
}

test('click of a pointer does not act; a key does', (context) => {
  const {element, acts} = held(context);
  for (const [detail, count] of [[1, 0], [2, 0], [0, 1]]) {
    const click = Object.assign(new Event('click', {cancelable: true}), {detail});
    assert.equal(element.dispatchEvent(click), false);
    assert.equal(acts.count, count);
  }
});
