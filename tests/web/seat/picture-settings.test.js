// The picture's settings: valid choices, and sent messages. Notes about fewer pictures, on a document
// of our own.

import assert from 'node:assert/strict';
import {beforeEach, mock, test} from 'node:test';

import {textOf} from '../english.js';
import {Rate} from '../../../web/video/remedy.js';
import {encode} from '../../../web/seat/messages.js';
import {PictureNotes, sizeOf, withNow} from '../../../web/seat/drawer/picture-settings.js';

test('current value is among the choices, in order', () => {
  assert.deepEqual(withNow([10, 20, 30], 20), [10, 20, 30]);
  assert.deepEqual(withNow([10, 20, 30], 12.5), [10, 12.5, 20, 30]);
  assert.deepEqual(withNow(['320 × 240', '1280 × 720'], '800 × 600'),
    ['320 × 240', '800 × 600', '1280 × 720']);
});

test('size is parsed into two numbers', () => {
  assert.deepEqual(sizeOf('640 × 480'), {width: 640, height: 480});
});

test('unknown or malformed picture setting is not sent', () => {
  assert.match(encode({kind: 'picture', to: {night: true, view: 'fast'}}), /"view":"fast"/);
  for (const to of [{zoom: 2}, {width: 641}, {flip: 'over'}, {view: 'wide'}, {night: 1}, null]) {
    assert.throws(() => encode(/** @type {any} */ ({kind: 'picture', to})), /picture refused/);
  }
});

class FakeElement {
  constructor() {
    this.textContent = '';
    this.hidden = true;
    /** @type {FakeElement[]} */
    this.children = [];
  }

  append(/** @type {FakeElement} */ element) {
    this.children.push(element);
  }

  hasAttribute() {
    return this.hidden;
  }

  toggleAttribute(/** @type {string} */ _, /** @type {boolean} */ on) {
    this.hidden = on;
  }

  remove() {}
}

/** @type {Record<string, FakeElement>} */
let elements = {};
/** @param {string} id */
const note = (id) => (elements[id]?.hidden ? '' : elements[id]?.textContent ?? '');
const toasts = () => (elements.toasts?.children ?? []).map(({textContent}) => textContent);

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({apis: ['setTimeout']});
  elements = Object.fromEntries(['pace-says', 'rate-says', 'toasts'].map((id) => [id, new FakeElement()]));
  Object.assign(globalThis, {
    HTMLElement: FakeElement, isSecureContext: true,
    document: {getElementById: (/** @type {string} */ id) => elements[id], createElement: () => new FakeElement()},
  });
});

const count = {shown: 0, dropped: 0, bytes: 0, keysAsked: 0, faults: 0, fed: 0, decoded: 0, refused: 0};

/** Notes of a device that shows every second picture. @param {number} fps */
function slowDevice(fps) {
  const rate = new Rate();
  const asked = {fps};
  const video = {
    rate, count,
    behind: () => {
      const lower = rate.behind(performance.now(), asked.fps, true);
      rate.changedMs = -Infinity;
      return lower;
    },
  };
  const notes = new PictureNotes(() => video);
  const counts = {fed: 0, decoded: 0, refused: 0};
  const seconds = (/** @type {number} */ count, share = 0.5) => {
    for (; count > 0; count -= 1) {
      counts.fed += 30;
      counts.decoded += 30 * share;
      notes.second({...counts});
    }
  };
  seconds(1, 1);
  return {rate, asked, seconds};
}

test('device that asks for fewer pictures says so once', () => {
  const {rate, asked, seconds} = slowDevice(60);
  seconds(5);
  assert.equal(note('pace-says'), '');
  seconds(5);
  assert.equal(rate.most, 30);
  assert.match(note('pace-says'), /at most 30 pictures per second/);
  assert.equal(toasts().length, 1);
  asked.fps = 30;
  seconds(12, 1);
  assert.equal(toasts().length, 1);
  rate.most = 120;
  seconds(1, 1);
  assert.equal(note('pace-says'), '');
});

test('device that is too slow for the fewest pictures gets advice', () => {
  const {seconds} = slowDevice(10);
  seconds(10);
  assert.match(note('pace-says'), /too slow for the video/);
  assert.equal(toasts().length, 1);
  seconds(10, 1);
  assert.equal(note('pace-says'), '');
});

test('another large picture begins its figures anew', (context) => {
  const nowMs = context.mock.method(performance, 'now', () => 0).mock;
  const at = (/** @type {number} */ ms) => nowMs.mockImplementation(() => ms);
  let video = /** @type {any} */ ({count: {...count, bytes: 9000}});
  const notes = new PictureNotes(() => video);
  video.count.bytes = 10_000;
  at(2000);
  assert.equal(notes.bitsPerS(), 4000);
  video = {count: {...count, bytes: 500}};
  notes.restart();
  video.count.bytes = 750;
  at(3000);
  assert.equal(notes.bitsPerS(), 2000);
});

test('lower rate of the car is shown with its reason, and news once', () => {
  const notes = new PictureNotes(() => /** @type {any} */ ({count}));
  const state = (/** @type {string} */ text) => /** @type {any} */ ({lowered_rate: textOf(text)});
  for (let beat = 0; beat < 3; beat += 1) notes.update(state('30 instead of 60'));
  assert.equal(note('rate-says'), '30 instead of 60');
  assert.deepEqual(toasts(), ['30 instead of 60']);
  notes.update(/** @type {any} */ ({}));
  assert.equal(note('rate-says'), '');
});
