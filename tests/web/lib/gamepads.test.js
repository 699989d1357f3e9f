// Gamepads: the driving one, rest positions of axes, pushed buttons.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {FEEL} from '../../../web/lib/curves.js';
import {choosePad, connectedPads, hasGamepads, padWish, pushes} from '../../../web/lib/gamepads.js';
import {Gamepads} from '../../../web/seat/input/gamepad.js';

/** @param {Record<string, any>} more */
const pad = (more) => /** @type {any} */ ({
  id: 'a', index: 0, mapping: 'standard',
  axes: [0, 0], buttons: Array.from({length: 17}, () => ({pressed: false, value: 0})), ...more,
});

test('gamepad: triggers drive, the left stick steers', () => {
  const one = pad({axes: [-1, 0]});
  one.buttons[7] = {pressed: true, value: 1};
  assert.deepEqual(padWish(one), {throttle: 1, steer: 1});
  one.buttons[6] = {pressed: true, value: 1};
  assert.equal(padWish(one).throttle, 0);
  assert.deepEqual(padWish({axes: [], buttons: []}), {throttle: 0, steer: 0});
  const drift = padWish(pad({axes: [0.1]}));
  assert.ok(Object.is(drift.steer, 0), 'a worn stick does not creep');
});

test('gamepad: A, B, X and Y count once per push', () => {
  const one = pad({});
  one.buttons[1] = {pressed: true, value: 1};
  const first = pushes(one, new Set());
  assert.ok(first.stop && first.commands.length === 0);
  assert.ok(!pushes(one, first.down).stop);
  assert.ok(!pushes({axes: [], buttons: []}, first.down).stop);
  for (const index of [0, 2, 3]) one.buttons[index] = {pressed: true, value: 1};
  const more = pushes(one, first.down);
  assert.deepEqual([more.stop, more.commands], [false, ['lights', 'snapshot', 'mark']]);
  assert.deepEqual(pushes(one, more.down).commands, []);
});

test('gamepad has to rest once in the focused window before it drives', () => {
  let focused = true;
  /** @type {number[]} */
  const asked = [];
  const gamepads = new Gamepads({
    set: ({throttle}) => asked.push(throttle), stop: () => {}, command: () => {},
    came: () => {}, gone: () => {}, used: () => {}, focused: () => focused,
  });
  /** @param {number} value */
  const trigger = (value) => {
    const one = pad({});
    one.buttons[7] = {pressed: value > 0, value};
    gamepads.read([one]);
    return asked.at(-1);
  };
  assert.equal(trigger(1), 0, 'it came with its trigger down');
  trigger(0);
  assert.equal(trigger(1), 1);
  focused = false;
  gamepads.release();
  assert.equal(trigger(1), 0, 'still held');
  trigger(0);
  assert.equal(trigger(1), 0, 'somebody plays in another window');
  focused = true;
  assert.equal(trigger(1), 0);
  trigger(0);
  assert.equal(trigger(1), 1);
});

/** Gamepads with a clock, and their recorded effects. */
function gamepads() {
  const did = {wish: /** @type {any} */ (null), stops: 0, commands: /** @type {string[]} */ ([]),
    came: /** @type {string[]} */ ([]), gone: 0, used: 0};
  const clock = {ms: 0};
  const pads = new Gamepads({
    set: (wish) => (did.wish = wish), stop: () => (did.stops += 1),
    command: (name) => did.commands.push(name), came: (name) => did.came.push(name),
    gone: () => (did.gone += 1), used: () => (did.used += 1), focused: () => true, now: () => clock.ms,
  });
  /** Reads some pads for a while. @param {any[]} all */
  const read = (...all) => {
    for (let left = 40; left > 0; left -= 1) {
      clock.ms += 12;
      pads.read(all);
    }
    return did.wish;
  };
  return {pads, did, read, clock};
}
/** @param {any} one @param {number} index @param {number} value */
const push = (one, index, value) => (one.buttons[index] = {pressed: value > 0.5, value});
/** @param {number} index @param {Record<string, any>} more */
const phantom = (index, more = {}) => pad({id: 'Gaming KB', index, mapping: '', axes: Array(20).fill(0), ...more});

test('pad with a mapping drives, whatever stands before it in the list, and is announced', () => {
  for (const order of [[0, 1], [1, 0], [3, 0]]) {
    const {did, read} = gamepads();
    const [ghost, real] = [phantom(order[0]), pad({id: 'Xbox 360 (STANDARD GAMEPAD)', index: order[1]})];
    const both = order[0] < order[1] ? [ghost, real] : [real, ghost];
    read(...both);
    assert.deepEqual(did.came, ['Xbox 360']);
    push(real, 7, 1);
    assert.equal(read(...both).throttle, 1);
    push(ghost, 7, 1);
    push(real, 7, 0);
    assert.equal(read(...both).throttle, 0, 'a keyboard does not drive beside a gamepad');
  }
});

test('stop button of each gamepad counts, also of one that does not drive', () => {
  const {did, read} = gamepads();
  const all = [phantom(0), pad({id: 'one', index: 1}), pad({id: 'two', index: 2})];
  read(...all);
  for (const [count, one] of all.entries()) {
    push(one, 1, 1);
    read(...all);
    assert.equal(did.stops, count + 1);
  }
  push(all[0], 0, 1);
  read(...all);
  assert.deepEqual(did.commands, [], 'commands are those of the pad that drives');
});

test('gamepad that moves takes over from one at rest, never from one that drives', () => {
  const {did, read} = gamepads();
  const [one, two] = [pad({id: 'one'}), pad({id: 'two', index: 1})];
  read(one, two);
  push(one, 7, 1);
  assert.equal(read(one, two).throttle, 1);
  push(two, 6, 1);
  assert.equal(read(one, two).throttle, 1);
  push(one, 7, 0);
  push(two, 6, 0);
  read(one, two);
  push(two, 6, 1);
  assert.equal(read(one, two).throttle, 0, 'it came with its trigger down');
  push(two, 6, 0);
  read(one, two);
  push(two, 6, 1);
  assert.equal(read(one, two).throttle, -1);
  assert.deepEqual(did.came, ['one', 'two']);
  read(one);
  assert.deepEqual([did.gone, did.wish.throttle], [1, 0], 'the one that drove is gone');
});

test('pad without a mapping drives once it moves, if no other has one; a person may choose it', () => {
  const {did, read} = gamepads();
  const wheel = phantom(0, {id: 'Wheel'});
  read(wheel);
  assert.deepEqual(did.came, []);
  push(wheel, 3, 1);
  read(wheel);
  assert.deepEqual(did.came, ['Wheel']);
  const real = pad({id: 'Pad', index: 1});
  assert.equal(choosePad([wheel, real], undefined, () => false, false), real);
  FEEL.use = 'Wheel';
  assert.equal(choosePad([wheel, real], real, () => true, true), wheel);
  assert.equal(choosePad([real], undefined, () => false, false), real, 'the chosen one is not here');
  FEEL.use = '';
});

test('worn stick rests where it stands, and drives nothing without a thumb', () => {
  for (const rest of [0.11, 0.14, -0.2, 0.29]) {
    const {read, clock, pads} = gamepads();
    const one = pad({axes: [rest, 0]});
    for (let count = 0; count < 200; count += 1) {
      one.axes[0] = rest + (count % 2 ? 0.01 : -0.01);
      clock.ms += 12;
      pads.read([one]);
    }
    one.axes[0] = rest;
    push(one, 7, 1);
    assert.deepEqual(read(one), {throttle: 1, steer: 0}, String(rest));
    for (const way of [1, -1]) {
      one.axes[0] = way;
      assert.equal(read(one).steer, -way, 'the whole way is left');
    }
    one.axes[0] = 0;
    assert.equal(read(one).steer, 0, 'a thumb held it while it was measured');
    one.axes[0] = 0.25;
    assert.equal(read(one).steer !== 0, rest < 0.12, 'a thumb that drives is no rest');
  }
});

test('axis that never rests leaves the others alone', () => {
  FEEL.pad = {...FEEL.pad, forward: 'a3+', back: 'a3-'};
  const {read} = gamepads();
  const one = pad({axes: [0, 0, 0, -0.06]});
  read(one);
  one.axes[3] = 1;
  assert.equal(read(one).throttle, 1);
  FEEL.pad = {...FEEL.pad, forward: 'b7', back: 'b6'};
  const {read: again} = gamepads();
  const bent = pad({axes: [0.6, 0]});
  again(bent);
  push(bent, 7, 1);
  assert.deepEqual(again(bent), {throttle: 1, steer: 0});
});

test('browser without gamepads, or a frame that is denied them, has none', () => {
  Object.defineProperty(globalThis, 'navigator', {value: {}, configurable: true, writable: true});
  assert.ok(!hasGamepads());
  assert.deepEqual(connectedPads(), []);
  const {pads} = gamepads();
  pads.look();
  pads.asleep();
  Object.assign(globalThis, {navigator: {getGamepads: () => {
    throw new DOMException('denied', 'SecurityError');
  }}});
  assert.deepEqual(connectedPads(), []);
  Object.assign(globalThis, {navigator: {getGamepads: () => [null, {connected: false}, {connected: true}]}});
  assert.equal(connectedPads().length, 1);
});
