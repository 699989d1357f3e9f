// Places of a drive's copies, in words.

import assert from 'node:assert/strict';
import test from 'node:test';

import '../english.js';
import {STRINGS} from '../../../web/recordings/strings.js';

/** @param {string} place @param {boolean} whole @param {number} seconds */
const copy = (place, whole = true, seconds = 0) => ({place, verified_s: seconds, whole, tier: /** @type {const} */ ('')});

test('copies on car, station and remote are named with their state', () => {
  const said = STRINGS.copies([
    copy('car', true, 1.8e9), copy('', true, 1.8e9), copy('nas:/srv', false),
  ]);
  assert.match(said, /^on the car, verified .* · stored here, verified .* · nas:\/srv: not complete yet$/);
  assert.equal(STRINGS.copies([copy('car', false, 1.8e9)]), 'partly on the car');
  assert.equal(STRINGS.copies([copy('station')]), 'fetched by the station');
});
