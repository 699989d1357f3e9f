// Clock of the recordings page without a browser: decoded and shown pictures, and their times.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Player, SPEEDS} from '../../../web/recordings/player/player.js';

const FRAME_S = 1 / 30;

/** The pictures of a file: every `gop`th is key, and none is before `beginS`. */
function film(/** @type {number} */ seconds, /** @type {number} */ gop, /** @type {number} */ beginS) {
  /** @type {import('../../../web/recordings/types.js').Unit[]} */
  const units = [];
  for (let index = 0; index * FRAME_S < seconds; index += 1) {
    if (index * FRAME_S < beginS) continue;
    units.push({timeS: index * FRAME_S, key: index % gop === 0, unit: new Uint8Array([index & 255])});
  }
  return units;
}

/** A player over units that are all present except at the moments in `missing`. */
function playing(/** @type {{seconds?: number, gop?: number, beginS?: number, room?: () => boolean}} */ options = {}) {
  const {seconds = 20, gop = 10, beginS = 0, room = () => true} = options;
  const units = film(seconds, gop, beginS);
  const missing = new Set();
  /** @type {{timeS: number, decodeOnly: boolean}[]} */
  const pushed = [];
  const says = {takes: true};
  const player = new Player({
    seconds,
    units: {
      at: (timeS) => {
        const loS = Math.max(0, Math.floor(timeS / 8) * 8);
        if (missing.has(loS)) return null;
        // The units before the requested ones are included, like in the car's answer.
        const inside = units.filter((unit) => unit.timeS >= loS - 0.5 && unit.timeS < loS + 8);
        return {loS, hiS: loS + 8, units: inside.slice(inside.findIndex(({key}) => key))};
      },
      prefetch: () => undefined,
    },
    picture: {
      push: ({timeS}, decodeOnly) => {
        pushed.push({timeS, decodeOnly});
        return says.takes;
      },
      hasRoom: room,
    },
    changed: () => undefined,
  });
  let nowMs = 0;
  /** @param {number} ms */
  const pass = (ms) => {
    for (const untilMs = nowMs + ms; nowMs < untilMs;) {
      nowMs += 16;
      player.tick(nowMs);
    }
  };
  player.tick(nowMs);
  return {player, pushed, pass, missing, says, units};
}

test('player at rest shows only the first picture', () => {
  const {pushed, pass, player} = playing();
  pass(500);
  assert.deepEqual(pushed, [{timeS: 0, decodeOnly: false}]);
  assert.equal(player.timeS, 0);
});

test('first picture is shown early, and the next when it is due', () => {
  const {player, pushed, pass} = playing({beginS: 1});
  pass(100);
  assert.deepEqual(pushed.map(({timeS}) => Math.round(timeS * 30)), [30]);
  player.play();
  pass(500);
  assert.equal(pushed.length, 1);
  pass(700);
  assert.deepEqual(pushed.slice(0, 3).map(({timeS}) => Math.round(timeS * 30)), [30, 31, 32]);
});

for (const speed of SPEEDS) {
  test(`pictures at ${speed}x are decoded once, in order, when they are due`, () => {
    const {player, pushed, pass, units} = playing();
    player.setSpeed(speed);
    player.play();
    pass(2000);
    assert.ok(Math.abs(player.timeS - Math.min(20, 2 * speed)) < 0.05 * speed, `${player.timeS}`);
    const due = units.filter(({timeS}) => timeS <= player.timeS).map(({timeS}) => timeS);
    assert.deepEqual(pushed.map(({timeS}) => timeS), due);
    assert.ok(pushed.every(({decodeOnly}) => !decodeOnly));
  });
}

test('player stops at the end, and play restarts at the beginning', () => {
  const {player, pass} = playing({seconds: 1});
  player.play();
  pass(1500);
  assert.equal(player.playing, false);
  assert.equal(player.timeS, 1);
  player.play();
  assert.equal(player.timeS, 0);
});

test('seek decodes from the key frame before, and shows only the target', () => {
  const {player, pushed, pass} = playing();
  pass(50);
  pushed.length = 0;
  player.seek(10.2);
  pass(50);
  const shown = pushed.filter(({decodeOnly}) => !decodeOnly).map(({timeS}) => timeS);
  assert.equal(shown.length, 1);
  assert.ok(Math.abs(shown[0] - 10.2) < FRAME_S);
  assert.equal(Math.round(pushed[0].timeS * 30) % 10, 0, 'begins at a key frame');
  assert.ok(10.2 - pushed[0].timeS < 0.34);
});

test('forward seek within a group does not decode from the key frame again', () => {
  const {player, pushed, pass} = playing();
  player.seek(10.05);
  pass(50);
  pushed.length = 0;
  player.seek(10.2);
  pass(50);
  assert.ok(pushed.every(({timeS}) => timeS > 10.05));
  pushed.length = 0;
  player.seek(10.1);
  pass(50);
  assert.ok(pushed[0].timeS <= 10.0001, 'back: from the key frame');
});

test('step shows the next or the previous picture', () => {
  const {player, pushed, pass} = playing();
  player.seek(5);
  pass(50);
  const frame = () => Math.round((pushed.filter(({decodeOnly}) => !decodeOnly).at(-1)?.timeS ?? -1) * 30);
  const at = frame();
  for (const [way, wanted] of /** @type {const} */ ([[1, at + 1], [1, at + 2], [-1, at + 1], [-1, at]])) {
    player.step(way);
    pass(50);
    assert.equal(frame(), wanted);
  }
});

test('player waits for missing units, then continues where it stopped', () => {
  const {player, pass, missing, pushed} = playing();
  missing.add(8);
  player.seek(7.5);
  player.play();
  pass(3000);
  assert.ok(player.timeS < 8 && player.timeS > 7.99, `${player.timeS}`);
  assert.ok(player.playing);
  missing.clear();
  pass(1000);
  assert.ok(player.timeS > 8.9);
  const times = pushed.map(({timeS}) => timeS);
  assert.deepEqual(times, [...times].sort((a, b) => a - b), 'what leads up is not shown again');
});

test('span has all units for its moments, including the first ones', () => {
  const {player, pushed, pass, missing} = playing({gop: 7});
  player.seek(8.05);
  missing.add(0);
  pass(100);
  const frames = pushed.map(({timeS, decodeOnly}) => [Math.round(timeS * 30), decodeOnly]);
  assert.deepEqual(frames.slice(-4), [[238, true], [239, true], [240, true], [241, false]]);
  player.play();
  pass(200);
  assert.equal(Math.round((pushed.at(-1)?.timeS ?? 0) * 30), 247);
});

test('player reports that it waits for missing units', () => {
  const {player, pass, missing} = playing();
  missing.add(16);
  player.seek(17);
  pass(50);
  assert.ok(player.waiting);
  missing.clear();
  pass(50);
  assert.equal(player.waiting, false);
});

test('slow decoder skips to a key frame', () => {
  let budget = 0;
  const {player, pushed, pass} = playing({gop: 30, room: () => (budget -= 1) >= 0});
  player.setSpeed(8);
  player.play();
  for (let turn = 0; turn < 60; turn += 1) {
    budget = 1;
    pass(16);
  }
  const last = pushed.at(-1)?.timeS ?? 0;
  assert.ok(player.timeS - last < 3, `${player.timeS} ${last}`);
  assert.ok(pushed.length < 70);
});

test('refused unit is followed by the next key frame', () => {
  const {player, pushed, pass, says} = playing();
  player.play();
  pass(50);
  says.takes = false;
  pass(30);
  says.takes = true;
  const before = pushed.length;
  pass(700);
  const next = pushed.slice(before).find(({timeS}) => timeS > pushed[before - 1].timeS);
  assert.equal(Math.round((next?.timeS ?? 0) * 30) % 10, 0);
});

test('player does not jump after a sleep of the page', () => {
  const {player} = playing();
  player.play();
  player.tick(100);
  player.tick(60_000);
  assert.ok(player.timeS < 0.5);
});

test('playing begins at the first picture', () => {
  const {player, pushed, pass} = playing({seconds: 30, beginS: 18});
  pass(100);
  assert.equal(player.blank, true);
  player.firstS = 18;
  player.play();
  pass(200);
  assert.ok(player.timeS >= 18 && player.timeS < 19);
  assert.ok(Math.abs(pushed[0].timeS - 18) < FRAME_S);
  player.pause();
  player.seek(30);
  player.play();
  assert.equal(player.timeS, 18, 'and again from there');
});
