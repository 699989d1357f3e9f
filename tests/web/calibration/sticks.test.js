/** Functions of a gamepad's parts, and the feel of sticks: set by a person, saved, read. */

import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';

import '../english.js';
import {assigned, movedPart, parts} from '../../../web/calibration/sticks.js';
import {FEEL, feel, stick} from '../../../web/lib/curves.js';
import {padWish, pushes} from '../../../web/lib/gamepads.js';
import {Gamepads} from '../../../web/seat/input/gamepad.js';

const USUAL = structuredClone(FEEL);
afterEach(() => Object.assign(FEEL, structuredClone(USUAL)));

/** @param {number[]} axes @param {Record<number, number>} [down] */
const pad = (axes, down = {}) => /** @type {any} */ ({
  id: 'Pad', index: 0, mapping: 'standard', axes, buttons: Array.from({length: 17}, (_, index) =>
    ({pressed: (down[index] ?? 0) > 0.5, value: down[index] ?? 0})),
});

test('part that is pushed or moved furthest is selected', () => {
  const before = parts(pad([0.1, 0]));
  assert.equal(movedPart(before, parts(pad([0.3, 0]))), null);
  assert.equal(movedPart(before, parts(pad([0.3, -0.9]))), 'a1-');
  assert.equal(movedPart(before, parts(pad([0.9, 0]))), 'a0+');
  assert.equal(movedPart(before, parts(pad([0.1, 0], {5: 1}))), 'b5');
  assert.equal(movedPart(new Map(), new Map()), null);
});

test('part has one role: assigning it swaps the two roles', () => {
  const now = assigned(FEEL.pad, 'stop', 'b0');
  assert.deepEqual([now.stop, now.lights], ['b0', 'b1']);
  assert.equal(assigned(FEEL.pad, 'forward', 'a1-').forward, 'a1-');
  assert.deepEqual(assigned(FEEL.pad, 'stop', 'b1'), FEEL.pad);
});

test('gamepad drives by the assigned parts', () => {
  FEEL.pad = assigned(assigned(FEEL.pad, 'forward', 'a1-'), 'stop', 'b9');
  assert.equal(padWish(pad([0, -1])).throttle, 1);
  assert.equal(padWish(pad([0, 1])).throttle, 0);
  assert.ok(pushes(pad([0, 0], {9: 1}), new Set()).stop);
  assert.ok(!pushes(pad([0, 0], {1: 1}), new Set()).stop);
});

test('saved settings are restored as far as they are valid', () => {
  const pads = {...FEEL.pad, forward: 'b99', back: 'boom', left: 'a10-', stop: 7};
  feel(JSON.stringify({expo: 0.2, leftHanded: true, pad: pads}));
  assert.deepEqual([FEEL.expo, FEEL.leftHanded], [0.2, true]);
  assert.deepEqual([FEEL.pad.forward, FEEL.pad.back, FEEL.pad.left, FEEL.pad.stop],
    ['b99', 'b6', 'a10-', 'b1']);
  for (const text of ['', '{', 'null', '[]', '{"expo": 7}', '{"expo": "x", "pad": 3}']) feel(text);
  assert.equal(FEEL.expo, 0.2);
});

test('more expo lowers the middle of the stick, and full stays full', () => {
  const half = [0, 0.5, 1].map((expo) => {
    FEEL.expo = expo;
    assert.equal(stick(1), 1);
    return stick(0.5);
  });
  assert.ok(half[0] > half[1] && half[1] > half[2]);
});

test('gamepad does not drive while parts are assigned, but STOP works', () => {
  let stops = 0;
  let lights = 0;
  /** @type {{throttle: number, steer: number}[]} */
  const wishes = [];
  const pads = new Gamepads({
    set: (wish) => wishes.push(wish), stop: () => { stops += 1; }, command: () => { lights += 1; },
    came: () => {}, gone: () => {}, used: () => {}, focused: () => true,
  });
  pads.read([pad([0, 0])]);
  FEEL.learning = true;
  pads.read([pad([0, 0], {7: 1, 0: 1, 1: 1})]);
  assert.deepEqual(wishes.at(-1), {throttle: 0, steer: 0});
  assert.deepEqual([stops, lights], [1, 0]);
  FEEL.learning = false;
  pads.read([pad([0, 0], {7: 1})]);
  assert.deepEqual(wishes.at(-1), {throttle: 0, steer: 0}, 'it has to rest first');
  pads.read([pad([0, 0])]);
  pads.read([pad([0, 0], {7: 1})]);
  assert.equal(wishes.at(-1)?.throttle, 1);
});
