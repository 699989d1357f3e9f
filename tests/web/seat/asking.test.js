// Names of people, and requests for the wheel on the page.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {register} from '../../../web/lang/words.js';
import {LANGUAGES} from '../../../web/seat/drawer/app.js';
import {PLAIN} from '../../../web/seat/messages.js';
import {deviceOf, suggestedName} from '../../../web/seat/drawer/own_name.js';
import {askingTexts} from '../../../web/seat/hud/asking.js';
import {words} from '../lang/translations.js';

const AGENTS = {
  phone: [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36',
    'Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0',
  ],
  tablet: [
    'Mozilla/5.0 (iPad; CPU OS 12_0 like Mac OS X) AppleWebKit/605.1.15 Version/12.0 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (Linux; Android 14; SM-X700) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36',
  ],
  computer: [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  ],
  '': ['', 'curl/8.5.0'],
};

test('kind of device is recognised by its browser', () => {
  for (const [kind, agents] of Object.entries(AGENTS)) {
    for (const userAgent of agents) assert.equal(deviceOf({userAgent, maxTouchPoints: 0}), kind, userAgent);
  }
  assert.equal(deviceOf({userAgent: AGENTS.computer[1], maxTouchPoints: 5}), 'tablet', 'an iPad of today');
});

test('suggested names are varied, and accepted by the car in all languages', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    register(words(language, 'drawer'));
    for (const device of /** @type {const} */ (['phone', 'tablet', 'computer', ''])) {
      const names = new Set();
      for (let first = 0; first < 20; first += 1) {
        for (let second = 0; second < 24; second += 1) {
          const turns = [(first + 0.5) / 20, (second + 0.5) / 24];
          names.add(suggestedName(device, () => turns.shift() ?? 0));
        }
      }
      assert.equal(names.size, 20 * 24, `${language} ${device}`);
      for (const name of names) {
        assert.ok([...name].length <= 32 && PLAIN.test(name) && !/[{}]|undefined/.test(name), name);
      }
    }
  }
  register(words('en', 'drawer'));
  assert.equal(suggestedName('phone', () => 0), 'Blue Fox (phone)');
  assert.equal(suggestedName('', () => 0), 'Blue Fox');
});

const state = /** @type {any} */ ({driver: 'Ann', seat_free: false, wait_s: 10, asking: null});
/** @param {object} more @param {object} [asking] */
const says = (more, asking) => askingTexts({...state, ...more, asking: asking ?? null});

test('driver reads the name of the asker', () => {
  assert.deepEqual(says({}, {phase: 'asks', left_s: 30, id: 'a1234567', name: 'Mia'}), ['Mia asks for the wheel', '']);
  assert.deepEqual(says({}, {phase: 'asks', left_s: 30, id: 'a1234567', name: 'somebody'})[0], 'Someone asks for the wheel');
  assert.deepEqual(says({}), ['', '']);
});

test('asker reads the answer, and the time until the wheel is free', () => {
  const waits = {phase: 'waits', left_s: 30};
  assert.deepEqual(says({}, waits), ['You asked Ann for the wheel.', '']);
  assert.deepEqual(says({wait_s: 6.2}, waits), ['You asked Ann for the wheel.', 'Free in 7\u00a0s.']);
  assert.deepEqual(says({}, {phase: 'later', left_s: 29.5}), ['Ann keeps the wheel for now.', 'You can ask again in 30\u00a0s.']);
  assert.deepEqual(says({wait_s: 3}, {phase: 'unanswered', left_s: 8}),
    ['Ann did not answer.', 'Free in 3\u00a0s. You can ask again in 8\u00a0s.']);
  assert.deepEqual(says({wait_s: 0, seat_free: true}, waits), ['', ''], 'the card offers a free wheel');
});
