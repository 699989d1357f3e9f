// The collision guard's words and beeps, the battery's age, the computer's health.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {textOf} from '../english.js';
import {Beeps, behindM, due, rhythm} from '../../../web/seat/hud/beeps.js';
import {DRAWER_STRINGS, computerText, healthRows, keysOf} from '../../../web/seat/drawer/drawer-strings.js';
import {
  alarmOf, isDoubted, nearestEachWay, rangeFaults, rangesInWords,
} from '../../../web/seat/hud/ranges.js';
import {STRINGS} from '../../../web/seat/strings.js';

/** @import {Range, State} from '../../../web/lib/types.js' */

const front = {name: 'front', bearing_deg: 0, range_m: 0.4, age_s: 0.02, state: /** @type {const} */ ('ok')};
const rear = {name: 'rear', bearing_deg: 180, range_m: 0.2, age_s: 0.02, state: /** @type {const} */ ('ok')};
const guard = {mode: 'limit', stop_m: 0.15, ahead: 0.4, back: 1, ahead_by: 'front', back_by: 'rear'};
/** @param {Record<string, unknown>} more */
const alarm = (more) => alarmOf(/** @type {State} */ ({
  guard, throttle: 0.4, reason: 'guarded', ranges: [front, rear], ...more,
}));
const ahead = {back: false, name: 'front', metres: 0.4, acts: true, stands: false};

test('guard message has direction and distance', () => {
  assert.deepEqual(alarm({}), ahead);
  assert.equal(DRAWER_STRINGS.guardText(ahead), 'Wall 0.4\u00a0m ahead: the car slows down');
  const stands = alarm({throttle: 0, guard: {...guard, ahead: 0}});
  assert.deepEqual(stands, {...ahead, stands: true});
  assert.equal(DRAWER_STRINGS.guardText({...ahead, stands: true}), 'Wall 0.4\u00a0m ahead: the car stops');
});

test('guard message names the rear, also when the car stands', () => {
  const back = {back: true, name: 'rear', metres: 0.2, acts: true, stands: false};
  assert.deepEqual(alarm({throttle: -0.2, guard: {...guard, back: 0.2}}), back);
  assert.deepEqual(alarm({throttle: 0, guard: {...guard, back: 0}}), {...back, stands: true});
  assert.match(DRAWER_STRINGS.guardText(back), /^Wall 0.2\u00a0m behind: the car slows down$/);
});

test('guard message is absent if the guard does not act', () => {
  assert.equal(alarm({reason: 'driving'}), null, 'just as fast as it may');
  assert.equal(alarm({reason: 'neutral', throttle: 0, guard: {...guard, ahead: 0, back: 0}}), null);
  assert.equal(alarm({guard: {...guard, mode: 'off'}}), null);
  assert.equal(alarm({guard: null}), null);
  assert.equal(alarm({guard: undefined}), null);
});

test('limits of a grown-up name the guard, and that it helps little with an unmeasured speed', () => {
  assert.equal(STRINGS.max(0.5, guard), 'max 50% · guard helps');
  assert.equal(STRINGS.max(0.5, {...guard, measured: true}), 'max 50% · guard helps');
  const little = 'guard helps only a little: calibrate the speed';
  assert.equal(STRINGS.max(0.5, {...guard, measured: false}), `max 50% · ${little}`);
  assert.equal(STRINGS.max(0.5, {...guard, mode: 'off', measured: false}), 'max 50% · guard off');
  const cut = 'max 50% · guard helps · no emergency cut-off for the motor';
  assert.equal(STRINGS.max(0.5, guard, true), cut);
});

test('guard in warn mode asks the driver to brake', () => {
  const warn = {...guard, mode: 'warn'};
  const said = alarm({guard: warn, reason: 'driving', throttle: 0.41});
  assert.deepEqual(said, {...ahead, acts: false});
  assert.equal(DRAWER_STRINGS.guardText({...ahead, acts: false}), 'Wall 0.4\u00a0m ahead: brake!');
  assert.equal(alarm({guard: warn, reason: 'driving', throttle: -1}), null, 'away from it');
});

test('sensor without a measurement is not shown as a wall', () => {
  for (const one of [{...front, state: textOf('does not answer')}, {...front, age_s: 2}, {...front, name: 'x'}]) {
    const said = alarm({ranges: [one]});
    assert.deepEqual(said, {...ahead, metres: null});
  }
  assert.equal(DRAWER_STRINGS.guardText({...ahead, metres: null}), 'No reading ahead: go slowly that way');
  assert.equal(DRAWER_STRINGS.guardText({...ahead, metres: null, acts: false}),
    'No reading ahead: drive slowly');
  assert.equal(DRAWER_STRINGS.guardText({...ahead, metres: null, stands: true}),
    'No reading ahead: back up first', 'it stood before a wall when it failed');
  assert.equal(DRAWER_STRINGS.guardText({...ahead, back: true, metres: null, stands: true}),
    'No reading behind: drive forward first');
});

test('nearer of two sensors with the same bearing is drawn', () => {
  /** @param {Record<string, unknown>} more */
  const seen = (more, good = true) => ({range: {...front, ...more}, good});
  const depth = seen({name: 'depth', range_m: 0.3});
  const far = seen({name: 'far', range_m: null});
  /** @param {{range: Range}[]} all */
  const names = (...all) => nearestEachWay(/** @type {any} */ (all)).map(({range}) => range.name);
  assert.deepEqual(names(seen({}), depth, far), ['depth']);
  assert.deepEqual(names(depth, seen({}), far), ['depth']);
  assert.deepEqual(names(seen({range_m: 0.1}, false), far), ['far'], 'who says nothing is last');
  assert.deepEqual(names(seen({}, false), seen({name: 'two'}, false)), ['front']);
  assert.deepEqual(names(seen({bearing_deg: -180}), seen({name: 'two', bearing_deg: 180})), ['front']);
  assert.deepEqual(names(seen({bearing_deg: 30}), seen({name: 'two', bearing_deg: -30})), ['front', 'two']);
});

test('faulty sensor marks a good one with the same bearing as doubted', () => {
  const of = (/** @type {object} */ more, good = true) =>
    /** @type {any} */ ({range: {...front, ...more}, good});
  assert.equal(isDoubted(front, [of({}), of({name: 'sonar', bearing_deg: 5}, false)]), true);
  assert.equal(isDoubted(front, [of({}), of({name: 'sonar', bearing_deg: 5})]), false);
  assert.equal(isDoubted(front, [of({}), of({name: 'rear', bearing_deg: 180}, false)]), false);
});

test('beeps: faster when nearer, steady within the stop distance', () => {
  assert.equal(rhythm(null, 0.15), null);
  assert.equal(rhythm(1.51, 0.15), null);
  assert.equal(rhythm(0.15, 0.15), 0);
  assert.equal(rhythm(0.1, 0.15), 0);
  let before = Infinity;
  for (const metres of [1.5, 1.2, 0.9, 0.6, 0.3, 0.16]) {
    const every = rhythm(metres, 0.15);
    assert.ok(every !== null && every > 0.1 && every < before, `${metres} m: ${every}`);
    before = every;
  }
  assert.ok(Number.isFinite(rhythm(1.49, 1.5) ?? NaN) && rhythm(1.5, 1.5) === 0);
});

test('distance behind is the nearest of the rear sensors', () => {
  const left = {...rear, name: 'left', bearing_deg: -140, range_m: 0.1};
  assert.equal(behindM([front, rear]), 0.2);
  assert.equal(behindM([front, rear, left]), 0.1);
  assert.equal(behindM([rear, {...left, bearing_deg: -134}]), 0.2);
  assert.equal(behindM([{...rear, range_m: null}]), null);
  assert.equal(behindM([]), null);
});

test('distance behind is unknown if all rear sensors fail', () => {
  const ill = [{...rear, state: textOf('does not answer')}, {...rear, age_s: 2}, {...rear, age_s: null}];
  for (const one of ill) {
    assert.equal(behindM([front, one]), 'unknown');
    assert.equal(behindM([one, {...rear, name: 'depth', range_m: 0.7}]), 0.7, 'another measures');
    assert.equal(behindM([one, {...rear, name: 'depth', range_m: null}]), null, 'and sees nothing');
  }
  assert.equal(behindM(ill), 'unknown');
  assert.equal(behindM([front, {...ill[0], bearing_deg: 90}]), null, 'it looks aside');
});

test('unknown distance has rare and long beeps of its own', () => {
  const every = rhythm('unknown', 0.15);
  assert.ok(every !== null && every > 2 * Number(rhythm(1.5, 0.15)), `${every}`);
  const {context, loudAt} = studio();
  Object.assign(globalThis, {addEventListener: () => {}});
  const beeps = new Beeps(() => /** @type {AudioContext} */ (/** @type {unknown} */ (context)));
  let loud = 0;
  for (let ms = 0; ms < 3000; ms += 20) {
    context.currentTime = 10 + ms / 1000;
    if (ms % 100 === 0) beeps.update(every);
    if (loudAt(context.currentTime) > 0) loud += 1;
  }
  assert.ok(loud >= 36 && loud <= 44, `two of 0.4 s, not ${loud * 0.02} s`);
});

test('sensors without a distance have a line with reason and age', () => {
  const well = [front, {...rear, range_m: null}];
  assert.deepEqual(rangeFaults(well), []);
  assert.equal(rangesInWords(well), 'front: 0.40\u00a0m, rear: –');
  const ill = [front, {...rear, state: textOf('does not answer'), age_s: null, range_m: null},
    {...rear, name: 'depth', age_s: 3.7}, {...rear, name: 'side', state: textOf('noisy'), age_s: 0.1}];
  assert.deepEqual(rangeFaults(ill), ['rear: does not answer, no reading so far',
    'depth: no new reading, last reading 3\u00a0s ago', 'side: noisy, last reading just now']);
  assert.equal(rangesInWords(ill.slice(0, 3)), 'front: 0.40\u00a0m, ' +
    'rear: no distance (does not answer, no reading so far), ' +
    'depth: no distance (no new reading, last reading 3\u00a0s ago)');
  assert.equal(DRAWER_STRINGS.lastSeen(119), 'last reading 119\u00a0s ago');
  assert.equal(DRAWER_STRINGS.lastSeen(120), 'last reading 2\u00a0min ago');
});

test('beeps are planned a little ahead, and none twice', () => {
  assert.deepEqual(due(-Infinity, 0.1, 5), [5, 5.1, 5.199999999999999]);
  assert.deepEqual(due(5.2, 0.2, 5.1), []);
  assert.deepEqual(due(5.0, 0.3, 5.1), [5.3]);
  /** @type {number[]} */
  const all = [];
  let lastS = -Infinity;
  for (let now = 0; now < 2; now += 0.1) {
    for (const at of due(lastS, 0.25, now)) {
      all.push(at);
      lastS = at;
    }
  }
  assert.equal(all.length, 9);
  all.slice(1).forEach((at, index) => assert.ok(Math.abs(at - all[index] - 0.25) < 1e-9));
});

/** A tone that records its settings. */
function studio() {
  /** @type {[number, number][]} */
  const plan = [];
  const loudness = {
    value: 1,
    setValueAtTime: (/** @type {number} */ value, /** @type {number} */ atS) => plan.push([value, atS]),
    cancelScheduledValues: (/** @type {number} */ fromS) => {
      plan.splice(0, plan.length, ...plan.filter(([, atS]) => atS < fromS));
    },
  };
  const context = {
    currentTime: 10, state: 'running', destination: {}, resume: () => Promise.resolve(),
    createOscillator: () => ({frequency: {value: 0}, connect: (/** @type {unknown} */ to) => to, start: () => {}}),
    createGain: () => ({gain: loudness, connect: () => {}}),
  };
  const loudAt = (/** @type {number} */ atS) => plan.filter(([, at]) => at <= atS)
    .sort((one, two) => one[1] - two[1]).at(-1)?.[0] ?? loudness.value;
  return {plan, context, loudAt};
}

test('audio starts with the first beep; beeps end without updates, or at once on request', () => {
  Object.assign(globalThis, {addEventListener: () => {}});
  let made = 0;
  const {context, loudAt} = studio();
  const beeps = new Beeps(() => {
    made += 1;
    return /** @type {AudioContext} */ (/** @type {unknown} */ (context));
  });
  beeps.update(null);
  assert.equal(made, 0);
  beeps.update(0);
  assert.equal(made, 1);
  assert.ok(loudAt(10.1) > 0);
  assert.equal(loudAt(10.3), 0, 'the car says nothing more');
  context.currentTime = 10.1;
  beeps.update(0.2);
  context.currentTime = 10.15;
  beeps.update(null);
  for (const later of [10.15, 10.2, 10.5]) assert.equal(loudAt(later), 0);
  context.currentTime = 11;
  beeps.update(0.2);
  assert.ok(loudAt(11.01) > 0 && loudAt(11.1) === 0 && loudAt(11.21) > 0);
});

test('browser without audio raises no error', () => {
  new Beeps(null).update(0);
  new Beeps().update(0.2);  // Node has no audio
});

test('old voltage shows its age', () => {
  assert.equal(STRINGS.battery(7.42, 0.614, false, null), '61% · 7.4\u00a0V');
  assert.equal(STRINGS.ms(4), '4\u00a0ms', 'on one line');
  assert.equal(STRINGS.battery(6.3, 0.05, true, null), '5% · 6.3\u00a0V – low');
  assert.equal(STRINGS.battery(7.42, 0.614, true, 12.4), '7.4\u00a0V, 12\u00a0s ago');
  assert.equal(STRINGS.battery(null, null, false, 0), '? V');
  const battery = {volts: 7.4, amps: 1.25, share: 0.6, low: false, age_s: 0.1, state: /** @type {const} */ ('ok')};
  assert.equal(DRAWER_STRINGS.batteryText(battery), '7.40\u00a0V, 1.3\u00a0A, about\u00a060%');
  assert.match(DRAWER_STRINGS.batteryText({...battery, state: textOf('NACK')}), /, NACK$/);
  assert.equal(DRAWER_STRINGS.batteryText({volts: null, amps: null, share: null, low: false, age_s: null, state: textOf('NACK')}), 'NACK');
});

test('computer shows only its known values', () => {
  const {good} = JSON.parse(
    readFileSync(new URL('../../vectors/drive_down.json', import.meta.url), 'utf8'));
  const {health} = good[1].fields;
  /** @type {import('../../../web/lib/types.js').Health} */
  const unknown = {...health, ...Object.fromEntries(Object.keys(health).map((name) => [name, null])), faults: []};
  assert.deepEqual(healthRows(unknown), []);
  assert.equal(computerText(unknown), null);
  assert.equal(computerText({...unknown, age_s: 1}), 'fine');
  assert.deepEqual(healthRows(health), [
    ['Computer’s temperature', '48°C'],
    ['Computer’s Wi-Fi', '-84\u00a0dBm, 72\u00a0Mbit/s'], ['Free space on the card', '9.0\u00a0GB'],
    ['Free memory', '211\u00a0MB'], ['Load', '0.35'], ['Running for', '60\u00a0min'],
  ]);
  assert.equal(computerText(good[1].fields.health), 'weak Wi-Fi: -84\u00a0dBm');
  assert.equal(computerText({...health, faults: [{key: 'card_full', english: 'x'}, textOf('the calibration is damaged')]}),
    'the card is nearly full: 9.0\u00a0GB left; the calibration is damaged');
  assert.equal(DRAWER_STRINGS.uptime(7200), '2\u00a0hr');
  assert.equal(DRAWER_STRINGS.wifi(-60, null), '-60\u00a0dBm');
});

test('list of keys has only functions of the car', () => {
  const bare = keysOf({has_lights: false});
  assert.deepEqual(bare.map(([key]) => key), ['↑ ↓ ← → or W S A D', 'Space, Esc', 'F', 'P', 'M', '?', 'Gamepad']);
  assert.doesNotMatch(bare.flat().join(), /lights/);
  assert.match(keysOf({has_lights: true, features: ['intercom']}).flat().join(), /L,lights.*T,talk.*A: lights/);
});
