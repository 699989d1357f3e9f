// Wishes to turn the camera, by each input.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {places} from '../../../web/lib/camera_direction.js';
import {FEEL} from '../../../web/lib/curves.js';
import {Keyboard} from '../../../web/seat/input/keyboard.js';
import {LOOK_KEYS, keyTurn, padTurn, pointing, strongest, turned} from '../../../web/seat/servos/aim.js';

Object.assign(globalThis, Object.fromEntries(['HTMLElement', 'HTMLInputElement', 'HTMLSelectElement', 'HTMLTextAreaElement']
  .map((name) => [name, class {}])));
const pad = (axes = [0, 0, 0, 0], down = /** @type {number[]} */ ([])) => /** @type {any} */ ({
  mapping: 'standard', axes, buttons: Array.from({length: 17}, (_, index) => ({pressed: down.includes(index)})),
});
const round = (/** @type {{pan: number, tilt: number}} */ {pan, tilt}) => [Math.round(pan) + 0, Math.round(tilt) + 0];

test('keys of the camera neither drive nor command', () => {
  const wishes = /** @type {any[]} */ ([]);
  const commands = /** @type {string[]} */ ([]);
  const turns = /** @type {number[]} */ ([]);
  let rests = 0;
  const keyboard = new Keyboard({
    set: (wish) => wishes.push(wish), stop: () => assert.fail(), escape: () => assert.fail(),
    command: (name) => commands.push(name), used: () => assert.fail(), now: () => 0,
  });
  keyboard.camera = {turn: () => turns.push(keyboard.looks.size), rest: () => rests++};
  const push = (/** @type {string} */ code, repeat = false) => /** @type {any} */ ({
    code, key: '', repeat, target: null, preventDefault() {}, stopImmediatePropagation() {},
  });
  for (const code of Object.keys(LOOK_KEYS)) {
    keyboard.down(push(code));
    keyboard.down(push(code, true));
    keyboard.up(push(code));
  }
  keyboard.down(push('KeyR'));
  assert.deepEqual([wishes, commands, turns, rests], [[], [], [1, 0, 1, 0, 1, 0, 1, 0], 1]);
  keyboard.down(push('KeyO'));
  keyboard.camera = null;
  keyboard.down(push('KeyL'));
  assert.deepEqual(commands, ['lights', 'lights']);
});

test('held keys speed up, and opposite ones cancel', () => {
  assert.deepEqual(keyTurn(new Map([['KeyJ', 0]]), 0), {pan: 0.3, tilt: 0});
  assert.deepEqual(keyTurn(new Map([['KeyJ', 0], ['KeyK', 0]]), 5000), {pan: 1, tilt: -1});
  assert.deepEqual(keyTurn(new Map([['KeyJ', 0], ['KeyL', 0]]), 5000), {pan: 0, tilt: 0});
});

test('right stick and d-pad of a gamepad turn the camera unless they drive', () => {
  assert.deepEqual(round(padTurn(pad([0, 0, -1, 1]))), [1, -1]);
  assert.deepEqual(padTurn(pad([0, 0, 0.05, 0], [12, 15, 11])), {pan: -1, tilt: 1, rest: true});
  assert.deepEqual(padTurn({...pad([0, 0, 1, 1]), mapping: ''}), {pan: 0, tilt: 0, rest: false});
  const {left} = FEEL.pad;
  FEEL.pad.left = 'a2-';
  assert.deepEqual(round(padTurn(pad([0, 0, -1, -1]))), [0, 1]);
  FEEL.pad.left = left;
});

test('strongest input wins on each axis', () => {
  assert.deepEqual(strongest([{pan: 0.2, tilt: -1}, {pan: -0.5, tilt: 0.4}]), {pan: -0.5, tilt: -1});
  assert.deepEqual(strongest([]), {pan: 0, tilt: 0});
});

test('phone points where its back looks', () => {
  const upright = pointing(0, 90, 0);
  assert.deepEqual(round(turned(upright, pointing(30, 90, 0))), [30, 0]);
  assert.deepEqual(round(turned(upright, pointing(0, 110, 0))), [0, 20]);
  // on its side, as in landscape
  const side = pointing(0, 0, -90);
  assert.deepEqual(round(turned(side, pointing(20, 0, -90))), [20, 0]);
  assert.deepEqual(round(turned(side, pointing(0, 0, -75))), [0, -15]);
  assert.deepEqual(round(turned({pan: 170, tilt: 0}, {pan: -170, tilt: 0})), [20, 0]);
});

test('picture shows left and up as such', () => {
  const servo = {deg: 70, least_deg: -70, most_deg: 70, rest_deg: 0};
  assert.deepEqual(places(servo, 66), [0, 33]);
  assert.deepEqual(places({...servo, deg: -70}, 66), [66, 33]);
  assert.deepEqual(places(undefined, 66), [33, 33]);
});
