// The children's page: its messages, its immediate display, its reconnects.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {LOOKS, SHAPES} from '../../../web/buttons/draw.js';
import {AGAIN_MS, Reconnect, SILENT_MS, TRY_MS} from '../../../web/buttons/link.js';
import {GLOW_MS, Model, bits, stars} from '../../../web/buttons/model.js';
import {STRINGS} from '../../../web/buttons/strings.js';
import {encode, parse} from '../../../web/buttons/messages.js';
import {WireError} from '../../../web/lib/wire.js';
import '../english.js';

/** @param {string} name */
const file = (name) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
/** @param {string} name */
const vectors = (name) => JSON.parse(file(`tests/vectors/${name}.json`));
/** @param {Partial<import('../../../web/lib/types.js').Glow>} more */
const glow = (more = {}) => ({
  kind: /** @type {const} */ ('glow'), seq: 1, lit: 0, mode: 'free', length: 0, done: 0, best: 0,
  ...more,
});

test('messages of the page encode to the shared vectors', () => {
  const {good, refused} = vectors('buttons_up');
  assert.ok(good.length >= 6);
  for (const {text} of good) assert.deepEqual(JSON.parse(encode(JSON.parse(text))), JSON.parse(text));
  for (const {fields, text} of refused) {
    if (fields) assert.throws(() => encode(fields), WireError, text);
  }
  assert.throws(() => encode(/** @type {any} */ ({kind: 'drive', throttle: 1})), /unknown kind/);
});

test('messages of the car are parsed, malformed ones refused, unknown ones ignored', () => {
  const {good, refused, unknown} = vectors('buttons_down');
  for (const {text} of good) assert.deepEqual(parse(text), JSON.parse(text));
  for (const {text} of refused) assert.throws(() => parse(text), WireError, text);
  for (const {text} of unknown) assert.equal(parse(text), null);
});

test('button glows at once on a push, and for a minimum time', () => {
  const model = new Model();
  assert.equal(model.finger('thumb', 2, 0), 'push');
  assert.equal(model.shown(0), 0b100);
  assert.equal(model.finger('thumb', 2, 1), '', 'it is there already');
  assert.equal(model.finger('thumb', -1, 10), 'change');
  assert.equal(model.held, 0);
  assert.equal(model.shown(GLOW_MS - 1), 0b100, 'no flicker until the car answers');
  assert.equal(model.shown(GLOW_MS), 0);
});

test('several fingers hold several buttons, and a finger can slide to the next', () => {
  const model = new Model();
  model.finger('left', 0, 0);
  model.finger('right', 3, 0);
  assert.equal(model.held, 0b1001);
  assert.equal(model.finger('right', 1, 10), 'push');
  assert.equal(model.held, 0b0011);
  assert.equal(model.release(), true);
  assert.equal(model.held, 0);
  assert.equal(model.release(), false);
});

test('remote push is shown and sounds once; own push does not sound again', () => {
  const model = new Model();
  assert.deepEqual(model.heard(glow(), 0), {tones: [], jingle: ''});
  assert.deepEqual(model.heard(glow({lit: 0b0110}), 1).tones, [1, 2]);
  assert.equal(model.shown(2), 0b0110);
  assert.deepEqual(model.heard(glow({lit: 0b0110}), 2).tones, []);
  model.finger('thumb', 0, 3);
  assert.deepEqual(model.heard(glow({lit: 0b0111}), 20).tones, []);
});

test('buttons lit when the page opens do not sound', () => {
  assert.deepEqual(new Model().heard(glow({lit: 1}), 0).tones, []);
});

test('fingers do not glow while the car plays', () => {
  for (const mode of ['show', 'cheer', 'sad']) {
    const model = new Model();
    model.heard(glow({mode, lit: 0b10}), 0);
    model.finger('thumb', 0, 1);
    assert.equal(model.open, false);
    assert.equal(model.shown(2), 0b10, mode);
    assert.equal(model.held, 1, 'the car hears of it all the same, and decides');
  }
});

test('pattern sounds, rainbow does not, endings have a jingle', () => {
  const model = new Model();
  model.heard(glow(), 0);
  assert.deepEqual(model.heard(glow({mode: 'rainbow', lit: 1}), 1), {tones: [], jingle: ''});
  assert.deepEqual(model.heard(glow({mode: 'show', lit: 4}), 2), {tones: [2], jingle: ''});
  assert.deepEqual(model.heard(glow({mode: 'cheer', lit: 7}), 3), {tones: [], jingle: 'cheer'});
  assert.deepEqual(model.heard(glow({mode: 'cheer'}), 4), {tones: [], jingle: ''});
  assert.deepEqual(model.heard(glow({mode: 'sad'}), 5), {tones: [], jingle: 'sad'});
});

test('buttons glow locally when the link is lost', () => {
  const model = new Model();
  model.heard(glow({mode: 'show', lit: 0b1000}), 0);
  model.lost();
  assert.equal(model.shown(1), 0);
  assert.equal(model.open, true);
  model.finger('thumb', 1, 2);
  assert.equal(model.shown(3), 0b10);
});

test('stars show the state of the game', () => {
  assert.deepEqual(stars({mode: 'free', length: 0, done: 0, best: 7}), []);
  assert.deepEqual(stars({mode: 'turn', length: 3, done: 1, best: 4}),
    ['gold', 'now', 'now', 'goal']);
  assert.deepEqual(stars({mode: 'sad', length: 3, done: 0, best: 2}), ['gold', 'gold', 'now']);
  assert.equal(stars({mode: 'turn', length: 32, done: 1, best: 32}).length, 16);
});

test('reconnect retries after a timeout, a silence and a failure', () => {
  const line = new Reconnect(0);
  /** Reconnect times. @param {number} from @param {number} to */
  const opens = (from, to) => {
    const found = [];
    for (let ms = from; ms <= to; ms += 50) if (line.tick(ms)) found.push(ms);
    return found;
  };
  assert.deepEqual(opens(0, TRY_MS), []);
  assert.deepEqual(opens(TRY_MS + 50, TRY_MS + 50), [TRY_MS + 50]);
  line.heard(3000);
  assert.equal(line.up, true);
  assert.deepEqual(opens(3000, 3000 + SILENT_MS), []);
  assert.deepEqual(opens(3050 + SILENT_MS, 3050 + SILENT_MS), [3050 + SILENT_MS]);
  assert.equal(line.up, false);
  line.failed(5000);
  line.heard(5001);
  assert.equal(line.up, false, 'a closed socket says nothing');
  assert.deepEqual(opens(5050, 5000 + AGAIN_MS + 50), [5000 + AGAIN_MS + 50]);
});

test('sleep of the page does not count as silence', () => {
  const line = new Reconnect(0);
  line.heard(10);
  line.tick(100);
  assert.equal(line.tick(60_000), false);
  assert.equal(line.tick(60_000 + SILENT_MS + 1 - 1000), false);
  assert.equal(line.up, true);
});

/** Relative luminance, WCAG 2.2. @param {string} hex */
function luminance(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
/** @param {string} one @param {string} other */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test('buttons and shapes have enough contrast without colour, lit and dark', () => {
  const css = file('web/buttons/buttons.css');
  const grounds = [...css.matchAll(/--ground: (#[0-9a-f]{6})/g)].map(([, ground]) => ground);
  assert.equal(grounds.length, 2, 'by night and by day');
  const found = [...css.matchAll(
    /data-colour="(\w+)"\] { --on: (#[0-9a-f]{6}); --off: (#[0-9a-f]{6}); --ink: (#[0-9a-f]{6})/g)];
  assert.equal(found.length, 6);
  for (const [, name, on, off, ink] of found) {
    for (const ground of grounds) {
      assert.ok(contrast(off, ground) >= 3, `${name} on ${ground}: ${contrast(off, ground)}`);
    }
    assert.ok(contrast(ink, off) >= 3, `dark ${name}: ${contrast(ink, off)}`);
    assert.ok(contrast(ink, on) >= 3, `lit ${name}: ${contrast(ink, on)}`);
    assert.ok(contrast(on, off) >= 1.5, `${name}, lit and dark: ${contrast(on, off)}`);
  }
});

test('colours and shapes of a profile all exist on the page', () => {
  const config = file('pi/fpvcar/config/schema.py');
  /** @param {string} name */
  const listed = (name) =>
    [...(new RegExp(`${name} = Literal\\[([^\\]]*)\\]`).exec(config)?.[1] ?? '').matchAll(/"(\w+)"/g)]
      .map(([, word]) => word);
  const colours = listed('Colour');
  assert.equal(colours.length, 6);
  const css = file('web/buttons/buttons.css');
  for (const colour of colours) assert.ok(css.includes(`[data-colour="${colour}"]`), colour);
  assert.deepEqual(Object.keys(SHAPES).sort(), listed('Shape').sort());
  assert.deepEqual(LOOKS.map(STRINGS.button),
    ['red circle', 'yellow triangle', 'green square', 'blue star']);
});

test('page opens only the buttons socket, not the drive socket', () => {
  const html = file('web/buttons.html');
  const loaded = [...html.matchAll(/(?:href|src)="([\w/]+\.js)"/g)].map(([, name]) => name);
  assert.ok(loaded.length > 8);
  for (const name of loaded) {
    assert.ok(!/\/ws\/(?!buttons)/.test(file(`web/${name}`).replace(/\/\*\*?[^]*?\*\//g, '')), name);
  }
});

test('bits lists the positions of the bits that are set', () => {
  assert.deepEqual(bits(0), []);
  assert.deepEqual(bits(0b101001), [0, 3, 5]);
});
