// Places of units in the media, and the picture shown at each media time.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {DURATION_US, Timeline} from '../../../web/video/timeline.js';

/** @param {number[]} capturesUs */
function placed(capturesUs) {
  const timeline = new Timeline();
  return {timeline, startsUs: capturesUs.map((captureUs) => timeline.place(captureUs))};
}

test('units keep the spacing of their capture times', () => {
  assert.deepEqual(placed([7_000_000, 7_033_000, 7_067_000]).startsUs, [0, 33_000, 67_000]);
});

test('pause or clock jump leaves no gap and no overlap', () => {
  for (const next of [8_500_000, 5000, 7_000_000]) {
    assert.deepEqual(placed([7_000_000, next]).startsUs, [0, DURATION_US]);
  }
});

test('shown picture is found by its media time, up to the next one', () => {
  const {timeline} = placed([7_000_000, 9_000_000, 9_033_000]);
  for (const [mediaS, captureUs] of [
    [0, 7_000_000], [0.0999999, 9_000_000], [0.1, 9_000_000], [0.12, 9_000_000],
    [0.133, 9_033_000],
  ]) assert.equal(timeline.captureUs(mediaS), captureUs, `${mediaS}`);
});

test('foreign or old media time gives no capture time', () => {
  assert.equal(new Timeline().captureUs(3), null);
  const {timeline} = placed([7_000_000, 7_033_000]);
  assert.equal(timeline.captureUs(5), null);
  for (let count = 0; count < 500; count += 1) timeline.place(8_000_000 + count * 33_000);
  assert.equal(timeline.captureUs(0.01), null);
  assert.equal(timeline.known.length, 90);
});
