// Archived drives: their place, and the progress of their way back.

import assert from 'node:assert/strict';
import test from 'node:test';

import {textOf} from '../english.js';
import {driveOf, isAway} from '../../../web/recordings/drives.js';
import {STATION_STRINGS} from '../../../web/recordings/list/station-strings.js';
import {recallFigures, recallText} from '../../../web/recordings/player/recall.js';
import {STRINGS} from '../../../web/recordings/strings.js';

/** @import {RecallState, Tier} from '../../../web/recordings/types.js' */

/** @param {Partial<RecallState>} [more] @returns {RecallState} */
const recall = (more) => ({
  session: 'S', drives: ['d'], place: 's3://b', total: 340e6, done: 12e6, rate: 4e6,
  state: 'copying', fault: null, ...more,
});
/** @param {Tier} tier */
const copy = (tier) => ({place: tier ? '/mnt/archive' : '', verified_s: 0, whole: true, tier});

test('recall shows its bytes, rate and time left while it copies', () => {
  assert.equal(recallFigures(recall()), '12\u00a0MB of 340\u00a0MB, 4.0\u00a0MB/s, 1\u00a0minute 22\u00a0seconds to go');
  assert.equal(recallFigures(recall({rate: 0})), '12\u00a0MB of 340\u00a0MB');
  assert.equal(recallFigures(recall({done: 341e6, rate: 0})), '340\u00a0MB of 340\u00a0MB', 'with its list');
  assert.equal(recallFigures(recall({state: 'verifying'})), '');
});

test('recall names its place, or the reason of its failure', () => {
  assert.equal(recallText(recall()), 'Being brought back from s3://b.');
  assert.match(recallText(recall({state: 'failed', fault: textOf('no room')})), /^That did not work: no room/);
  assert.equal(recallText(recall({state: 'done', fault: textOf('1 segment bad')})), '1 segment bad');
  assert.equal(recallText(recall({state: 'done'})), '');
});

test('drive knows its archive, and whether it can be played from there', () => {
  for (const [tier, away] of /** @type {[Tier, boolean][]} */ (
    [['', false], ['folder', false], ['bucket', true], ['away', true]])) {
    const drive = driveOf(/** @type {any} */ ({start_ms: 0, parts: []}), [copy(''), copy(tier)]);
    assert.equal(drive.archive?.tier ?? '', tier);
    assert.equal(isAway(drive), away);
  }
  assert.equal(STRINGS.copies([copy('folder')]), 'archived in /mnt/archive');
});

test('late file of an archived session is no claim that all is fetched', () => {
  const car = /** @type {any} */ ({waiting: 0, state: null, late: {'a.mcap': textOf('S is in /mnt')}});
  assert.equal(STATION_STRINGS.car(car), '1 late file stays on the car: S is in /mnt');
  assert.match(STATION_STRINGS.car({...car, late: {}}), /fetched/);
});
