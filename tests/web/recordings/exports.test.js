// Speed of an export, and the place of a drive's first picture.

import assert from 'node:assert/strict';
import test from 'node:test';
import '../english.js';
import {Refused} from '../../../web/lib/http.js';
import {Rate} from '../../../web/recordings/player/exports.js';
import {firstPictureS} from '../../../web/recordings/player/first.js';

test('rate covers only the last seconds', () => {
  const rate = new Rate();
  assert.equal(rate.bytesS, null);
  rate.add(0, 0);
  assert.equal(rate.leftS(1e6), null);
  for (let second = 1; second <= 10; second += 1) rate.add(second * 1000, second * 1e6);
  assert.equal(rate.bytesS, 1e6);
  for (let second = 11; second <= 20; second += 1) rate.add(second * 1000, 1e7 + (second - 10) * 2e6);
  assert.equal(rate.bytesS, 2e6);
  assert.equal(rate.leftS(3.2e7), 1);
  assert.ok(rate.seen.length <= 7, 'it is not kept for ever');
});

test('restarted or stalled export has no rate', () => {
  const rate = new Rate();
  rate.add(0, 5e6);
  rate.add(1000, 6e6);
  rate.add(2000, 0);
  assert.equal(rate.bytesS, null);
  rate.add(3000, 0);
  assert.equal(rate.bytesS, null);
  assert.equal(rate.leftS(1e6), null);
});

/** @param {number} timeS @returns {ArrayBuffer} a key frame of that moment */
function unitAt(timeS) {
  const bytes = new ArrayBuffer(20 + 4);
  const view = new DataView(bytes);
  new Uint8Array(bytes).set([1, 1, 1]);
  view.setBigUint64(8, BigInt(Math.round((1e6 + timeS) * 1e6)), true);
  view.setUint32(16, 4, true);
  return bytes;
}

/** @param {number} startS @param {number} pictures */
const part = (startS, pictures) => ({
  name: `at-${startS}`, startS, endS: startS + 60, seconds: 60, pictures,
  start_ms: 1e9 + startS * 1000, bytes: 1, state: 'closed', lost: '', marks: [],
  from_s: 0, to_s: 60, shared: false,
});

/** @param {ReturnType<typeof part>[]} parts @returns {any} */
const drive = (...parts) => ({startMs: 1e9, seconds: 150, bytes: 1, parts, state: 'closed'});

test('first picture is searched only in files with pictures', async () => {
  /** @type {[string, number][]} */
  const asked = [];
  const thumbnail = async (/** @type {string} */ name, /** @type {number} */ fromS) => {
    asked.push([name, fromS]);
    if (name === 'at--30') throw new Refused('No picture was recorded here.', 404, null);
    return unitAt(97);
  };
  const found = await firstPictureS(drive(part(-90, 5), part(-30, 5), part(30, 0), part(90, 9)), 4, thumbnail);
  assert.equal(found, 97);
  assert.deepEqual(asked, [['at--30', 34], ['at-90', 0]]);
  assert.equal(await firstPictureS(drive(part(0, 0)), 0, thumbnail), null);
});

test('picture after the drive does not count; a network error is raised', async () => {
  assert.equal(await firstPictureS(drive(part(0, 5)), 0, async () => unitAt(151)), null);
  await assert.rejects(firstPictureS(drive(part(0, 5)), 0, async () => {
    throw new Error('no network');
  }), /no network/);
});
