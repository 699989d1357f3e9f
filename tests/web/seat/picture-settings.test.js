// The picture's settings: valid choices, and sent messages.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {encode} from '../../../web/lib/wire.js';
import {sizeOf, withNow} from '../../../web/seat/drawer/picture-settings.js';

test('current value is among the choices, in order', () => {
  assert.deepEqual(withNow([10, 20, 30], 20), [10, 20, 30]);
  assert.deepEqual(withNow([10, 20, 30], 12.5), [10, 12.5, 20, 30]);
  assert.deepEqual(withNow(['320 × 240', '1280 × 720'], '800 × 600'),
    ['320 × 240', '800 × 600', '1280 × 720']);
});

test('size is parsed into two numbers', () => {
  assert.deepEqual(sizeOf('640 × 480'), {width: 640, height: 480});
});

test('unknown or malformed picture setting is not sent', () => {
  assert.match(encode({kind: 'picture', to: {night: true, view: 'fast'}}), /"view":"fast"/);
  for (const to of [{zoom: 2}, {width: 641}, {flip: 'over'}, {view: 'wide'}, {night: 1}, null]) {
    assert.throws(() => encode(/** @type {any} */ ({kind: 'picture', to})), /picture refused/);
  }
});
