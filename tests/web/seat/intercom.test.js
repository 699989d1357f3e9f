// The intercom's frames and queue, and its buttons without a browser.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Player, SAMPLES, linear, muLaw, packSound, parseSound} from '../../../web/seat/intercom/sound.js';

test('mu-law has the codes of G.711', () => {
  assert.deepEqual([0, 1, -1, 0.5, -0.5].map(muLaw), [0xff, 0x80, 0x00, 0x8f, 0x0f]);
  assert.equal(linear(0xff), 0);
  assert.equal(linear(0x80), 32124 / 32768);
  assert.equal(linear(0x00), -32124 / 32768);
  for (let code = 0; code < 256; code += 1) {
    if (code !== 0x7f) assert.equal(muLaw(linear(code)), code);
  }
  for (let level = -1; level <= 1; level += 1 / 512) {
    assert.ok(Math.abs(linear(muLaw(level)) - level) <= 0.04 * Math.abs(level) + 0.001, String(level));
  }
});

test('frame has clock and sound, another length is refused', () => {
  const levels = Float32Array.from({length: SAMPLES}, (_, at) => Math.sin(at / 10) / 2);
  const frame = packSound(90_000_123_456.4, levels).buffer;
  const sound = parseSound(frame);
  assert.equal(sound?.clockUs, 90_000_123_456);
  sound?.levels.forEach((level, at) => assert.ok(Math.abs(level - levels[at]) < 0.03));
  for (const length of [0, 8, SAMPLES, SAMPLES + 9]) assert.equal(parseSound(new ArrayBuffer(length)), null);
});

test('player drops late sound, and never queues more than a quarter of a second', () => {
  /** @type {number[]} */
  const started = [];
  const source = {buffer: null, connect: () => {}, start: (/** @type {number} */ at) => started.push(at)};
  const context = {
    currentTime: 10, destination: {}, createBufferSource: () => source,
    createBuffer: () => ({copyToChannel: () => {}}),
  };
  const player = new Player(/** @type {AudioContext} */ (/** @type {unknown} */ (context)));
  const levels = new Float32Array(SAMPLES);
  for (const ageMs of [null, 201]) player.play(levels, ageMs);
  assert.deepEqual(started, []);
  for (let frame = 0; frame < 20; frame += 1) player.play(levels, 50);
  assert.deepEqual(started.map((at) => Math.round(at * 1000)), [10060, 10100, 10140, 10180]);
  context.currentTime = 20;
  player.play(levels, 0);
  assert.equal(started.at(-1), 20.06);
});
