// The brightness of each cell, with the cells of pi/fpvcar/hil/led_detector.py.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {COLUMNS, ROWS, brightness} from '../../../web/hil/cells.js';

test('RGBA pixel becomes one brightness value', () => {
  const rgba = new Uint8ClampedArray([0, 0, 0, 255, 255, 255, 255, 255, 0, 255, 0, 255]);
  assert.deepEqual(brightness(rgba), [0, 255, 150]);
});

test('page and led_detector.py have the same number of cells', () => {
  const spot = new URL('../../../pi/fpvcar/hil/led_detector.py', import.meta.url);
  assert.match(readFileSync(spot, 'utf8'), new RegExp(`COLUMNS, ROWS = ${COLUMNS}, ${ROWS}\n`));
});
