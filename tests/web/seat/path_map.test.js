// The map of the drive: dead reckoning of known paths, a trail of fixed size, the scale.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {Path, viewOf} from '../../../web/seat/hud/path_map.js';

/** A servo car of 1 m/s at half throttle. */
const CAR = {guard: {top_mps: 1.8, brake_mps2: 50}, speeds: {least_mps: 0.2}, turn: null, circle_m: 2};
/** With a motor per side, its middle on a circle of 0.25 m with full throttle and steering. */
const SIDES = {guard: {top_mps: 1.5, brake_mps2: 50}, speeds: {least_mps: 0}, turn: 0.5, circle_m: 0.25};

/**
 * The path after setpoints, each with its duration, in states every 100 ms.
 * @param {import('../../../web/seat/hud/path_map.js').Motion} motion
 * @param {[number, number, number][]} drive throttle, steering, seconds
 */
function driven(motion, drive) {
  const path = new Path(motion);
  let endS = 5;
  for (const [throttle, steer, seconds] of drive) {
    for (let atS = endS; atS < endS + seconds; atS += 0.1) {
      path.update({clock_us: Math.round(atS * 1e6), throttle, steer});
    }
    endS += seconds;
    path.update({clock_us: Math.round(endS * 1e6), throttle, steer});
  }
  return path;
}

/** @param {Path} path @param {[number, number, number]} pose x, y in m, heading in degrees @param {number} within m */
function assertPose({x, y, heading}, pose, within) {
  const found = [x, y, (heading * 180) / Math.PI];
  assert.ok(Math.hypot(x - pose[0], y - pose[1]) <= within && Math.abs(found[2] - pose[2]) <= 180 * within,
    `expected ${pose}, got ${found}`);
}

test('straight drive goes ahead, and back again', () => {
  assertPose(driven(CAR, [[0.5, 0, 3]]), [3, 0, 0], 0.05);
  assertPose(driven(CAR, [[0.5, 0, 3], [0, 0, 1], [-0.5, 0, 3]]), [0, 0, 0], 0.05);
});

test('quarter of a circle ends where geometry says, to 3 %', () => {
  assertPose(driven(CAR, [[0.5, 1, Math.PI / 2]]), [1, 1, 90], 0.03 * Math.PI / 2);
  assertPose(driven(CAR, [[0.5, -1, Math.PI / 2]]), [1, -1, -90], 0.03 * Math.PI / 2);
  assertPose(driven(CAR, [[0.5, 0.5, Math.PI]]), [2, 2, 90], 0.03 * Math.PI);
  assertPose(driven(CAR, [[-0.5, 1, Math.PI / 2]]), [-1, 1, -90], 0.03 * Math.PI / 2);
});

test('car with a motor per side turns by its sides, also in place', () => {
  // Sides of 0.5 and 1.5 m/s: 1 m/s in the middle, 0.125 m from the centre.
  const round = 2 * Math.PI * 0.125;
  assertPose(driven(SIDES, [[1, 1, round]]), [0, 0, 360], 0.05);
  const {x, y, heading} = driven(SIDES, [[0, 1, 1]]);
  assert.ok(Math.hypot(x, y) < 0.01 && heading > 5, `${x} ${y} ${heading}`);
});

test('car starts as a DC motor does, and brakes as the guard assumes', () => {
  const slow = {...CAR, guard: {top_mps: 1.8, brake_mps2: 1}};
  // Towards 1 m/s within 0.9 s: 1.20 m, then 0.89 m/s; 0.40 m until it stands.
  assertPose(driven(slow, [[0.5, 0, 2], [0, 0, 3]]), [1.6, 0, 0], 0.02);
});

test('silence counts for as long as the car drives on', () => {
  const path = driven(CAR, [[0.5, 0, 1]]);
  const {clock_us: clock} = path.last ?? {clock_us: 0};
  path.update({clock_us: clock, throttle: 0.5, steer: 0});
  path.update({clock_us: clock + 60e6, throttle: 0.5, steer: 0});
  assert.ok(path.x < 1 + 0.35, `${path.x}`);
  path.update({clock_us: 1, throttle: 0.5, steer: 0});
  assert.deepEqual([path.x, path.points.length], [0, 1], 'a restarted car starts anew');
});

test('trail of a long drive keeps its start, its shape and its size', () => {
  const path = driven(CAR, [[1, 0.2, 600]]);
  assert.ok(path.points.length <= 400 && path.points.length >= 150, `${path.points.length}`);
  assert.deepEqual(path.points[0], [0, 0]);
  assert.ok(path.points.every(([x, y]) => Math.abs(Math.hypot(x, y - 5) - 5) < 0.3), 'a circle of 10 m');
  path.clear();
  assert.deepEqual(path.points, [[0, 0]]);
});

test('scale bar is round and at most half of the map', () => {
  for (const [far, bar] of /** @type {const} */ ([[0.1, 1], [3, 1], [4, 2], [30, 10], [90, 50]])) {
    const {barM, perM} = viewOf([[0, 0], [far, 1]], 100);
    assert.equal(barM, bar, `${far} m`);
    assert.ok(perM * far <= 100 && barM * perM <= 50);
  }
});
