/** The button that moves: only while it is held and the car sends. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {Hold} from '../../../web/calibration/hold.js';
import {HEIGHT, Motion, WIDTH, difference} from '../../../web/calibration/motion.js';
import {STRINGS} from '../../../web/calibration/strings.js';

/** @typedef {{throttle: number, steer: number}} Wish */

function rig() {
  const clock = {ms: 0};
  /** @type {Wish[]} */
  const sent = [];
  /** @type {boolean[]} */
  const held = [];
  const hold = new Hold({
    set: (wish) => sent.push(wish), changed: (on) => held.push(on), now: () => clock.ms,
  });
  return {clock, hold, sent, held, last: () => sent.at(-1)?.throttle};
}

test('wish of the car is sent only while the button is held', () => {
  const {hold, sent, held, last} = rig();
  hold.hear({throttle: 0.2, steer: 0});
  hold.beat();
  assert.equal(sent.length, 0);
  hold.down();
  assert.equal(last(), 0.2);
  hold.hear({throttle: 0.3, steer: 0});
  assert.equal(last(), 0.3);
  hold.up();
  assert.equal(last(), 0);
  const {length} = sent;
  hold.hear({throttle: 0.4, steer: 0});
  hold.beat();
  hold.up();
  assert.equal(sent.length, length);
  assert.deepEqual(held, [true, false]);
});

test('push is ignored while nothing can move the car', () => {
  const {hold, sent, held} = rig();
  hold.hear({throttle: 0.2, steer: 0});
  hold.canMove = false;
  hold.down();
  hold.beat();
  assert.deepEqual([sent, held], [[], []]);
});

test('wish is zero after half a second without a message of the car', () => {
  const {clock, hold, last} = rig();
  hold.hear({throttle: 0.2, steer: 0});
  hold.down();
  clock.ms = 499;
  hold.beat();
  assert.equal(last(), 0.2);
  clock.ms = 501;
  hold.beat();
  assert.equal(last(), 0);
  hold.hear({throttle: 0.2, steer: 0});
  assert.equal(last(), 0.2);
  hold.up();
});

/** A picture of one level. @param {number} level */
const grey = (level) => new Uint8Array(WIDTH * HEIGHT).fill(level);

test('picture that changes more than at rest has moved', () => {
  const motion = new Motion();
  for (let look = 0; look < 20; look += 1) {
    assert.equal(motion.look(grey(100 + (look % 2)), false), false);
  }
  for (let look = 0; look < 20; look += 1) {
    assert.equal(motion.look(grey(100 + (look % 2)), true), false, 'its noise is no motion');
  }
  assert.equal(motion.look(grey(110), true), false, 'one look may be wrong');
  assert.equal(motion.look(grey(120), true), true);
});

test('motion is not reported without pictures at rest', () => {
  const motion = new Motion();
  for (let look = 0; look < 20; look += 1) {
    assert.equal(motion.look(grey(look * 10), true), false);
  }
  assert.equal(difference(grey(1), grey(4)), 3);
});

test('values and changes have names', () => {
  assert.equal(STRINGS.name('motors.drive.dead_band'), 'Drive motor: dead band (duty)');
  assert.equal(STRINGS.name('motors.balance'), 'Balance, + slows the left side');
  assert.equal(STRINGS.name('sensors.tof.front.offset_m'), 'Sensor “front”: offset (m)');
  assert.equal(STRINGS.change('dead_band drive'), 'Lowest power: drive motor');
  assert.equal(STRINGS.change('resistor drive'), 'Resistor: drive motor');
  assert.equal(STRINGS.change('guard.top_mps'), 'Speed at full throttle (m/s)');
  assert.equal(STRINGS.value(true), 'yes');
  assert.equal(STRINGS.value([0, 0.5, 1]), '0%, 50%, 100%');
});

test('results are in words and units of a person, without duties', () => {
  assert.equal(STRINGS.result('motors.drive.dead_band', 0.14), 'Starts to turn at 14.0% of full power');
  assert.equal(STRINGS.result('motors.steer.left_deg', 25), 'Turns 25.0° to the left');
  assert.equal(STRINGS.result('guard.top_mps', 1.394), 'At full throttle: 1.39\u00a0m/s');
  assert.equal(STRINGS.result('sensors.tof.front.offset_m', -0.021), 'Sensor corrected by -2.1\u00a0cm');
  assert.equal(STRINGS.result('battery.full_v', 8.4), 'Full at 8.40\u00a0V');
  assert.equal(STRINGS.result('motors.drive.invert', true), 'Direction reversed: yes');
});

test('waiting for the wall names the wanted distance', () => {
  const step = {
    kind: 'distance', of: 'front', phase: 'asks', wish: {throttle: 0, steer: 0}, found: {}, moves: false, held_back: null,
    range_m: 1.234, target_m: 0.5,
  };
  assert.equal(STRINGS.waits(step), 'Waiting for the wall: the sensor should measure about 0.50\u00a0m.');
  assert.match(STRINGS.phase(step), /about 0\.50\u00a0m away/);
  assert.equal(STRINGS.place(2, 7), '3 of 7');
});

test('step texts name a failure, the figures and the cause that holds the car back', () => {
  const step = {
    kind: 'battery', of: '', phase: 'odd_full', wish: {throttle: 0, steer: 0}, found: {}, moves: false,
    held_back: null, volts: 7.68, expected_v: 8.4,
  };
  assert.match(STRINGS.phase(step), /battery has 7.68\u00a0V; a full pack of this kind has 8.40\u00a0V/);
  assert.match(STRINGS.phase({...step, kind: 'distance', phase: 'again', offset_m: 0.081}), /off by 8.1\u00a0cm/);
  assert.match(STRINGS.phase({...step, phase: 'failed', fault: 'ValueError: x'}), /failed: ValueError: x\./);
  for (const cause of ['guard', 'blind_limit', 'weak', 'limit', 'handover']) {
    assert.match(STRINGS.heldBack({cause, by: ''}), /[Tt]he car|the car/);
  }
  const guard = {cause: 'guard', by: '', ahead: true, range_m: 0.14};
  assert.equal(STRINGS.heldBack(guard), 'Held back by the guard: 0.14\u00a0m ahead.');
  assert.equal(STRINGS.heldBack({...guard, ahead: false}), 'Held back by the guard: 0.14\u00a0m behind.');
  assert.match(STRINGS.heldBack({...guard, range_m: null}), /give it room/);
  assert.equal(STRINGS.heldBack({cause: 'estop', by: 'Ann'}), '');
});
