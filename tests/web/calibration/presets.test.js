/** Top speeds in m/s, and the speed limit of each. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {presets, shareOf} from '../../../web/calibration/presets.js';

test('speed between least and top maps to a share', () => {
  assert.equal(shareOf(0.8, 0.2, 1.4, 1), 0.5);
  assert.equal(shareOf(1.4, 0.2, 1.4, 1), 1);
  assert.equal(shareOf(2, 0.2, 1.4, 1), 1);
  assert.equal(shareOf(0.1, 0.2, 1.4, 1), 0.05, 'it still moves');
  assert.equal(shareOf(1.4, 0.2, 1.4, 0.6), 0.6, 'no more than the profile lets');
  assert.equal(shareOf(0.5, 1, 1, 1), 1);
});

test('presets use the calibrated speeds of the car', () => {
  const values = Object.entries({
    'speeds.least_mps': 0.2, 'speeds.small_child_mps': 0.4, 'speeds.child_mps': 0.8, 'guard.top_mps': 1.2,
  }).map(([key, value]) => ({key, value, own: value, least: null, most: null}));
  const made = presets({values, steps: [], changes: [], limit: 0.9, now: -1, undoable: false, faults: [], doubts: []});
  assert.deepEqual(made, [
    ['Small child: 0.4\u00a0m/s', 0.2], ['Child: walking pace (0.8\u00a0m/s)', 0.6], ['Grown-up: no limit', 0.9],
  ]);
});
