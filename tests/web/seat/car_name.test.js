// The card that asks for the car's name, and its suggestions.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {register} from '../../../web/lang/words.js';
import {LANGUAGES} from '../../../web/seat/drawer/app.js';
import {asksName, suggestedCarName, tidyName} from '../../../web/seat/drawer/car_name.js';
import {words} from '../lang/translations.js';

/** @import {Situation} from '../../../web/seat/types.js' */

/** @type {Parameters<typeof asksName>[0]} */
const fresh = {named: false, situation: {kind: 'ready', letGo: false}, drove: false, later: false,
  asking: false, focused: false};

test('name is asked for at the wheel of a car at rest, before the first drive', () => {
  assert.ok(asksName(fresh));
  assert.ok(!asksName({...fresh, named: true}));
  assert.ok(!asksName({...fresh, drove: true}));
  assert.ok(!asksName({...fresh, later: true}));
  /** @type {Situation[]} */
  const others = [
    {kind: 'connecting', stopWaits: false}, {kind: 'lost', sinceMs: 0, driving: true, stopWaits: false},
    {kind: 'watching', driver: null, free: true}, {kind: 'locked'}, {kind: 'ready', letGo: true},
    {kind: 'driving', limited: false}, {kind: 'camera', words: ''}, {kind: 'battery', wishing: false},
  ];
  for (const situation of others) assert.ok(!asksName({...fresh, situation}), situation.kind);
});

test('card stays while the picture or link is old, and under the fingers of a person', () => {
  /** @type {Situation[]} */
  const passing = [{kind: 'camera', words: ''}, {kind: 'late', ms: 300, limitMs: 200},
    {kind: 'lost', sinceMs: 0, driving: true, stopWaits: false}];
  for (const situation of passing) {
    assert.ok(asksName({...fresh, situation, asking: true}), situation.kind);
    assert.ok(!asksName({...fresh, situation, asking: true, drove: true}), situation.kind);
  }
  /** @type {Situation} */
  const other = {kind: 'watching', driver: 'Ann', free: false};
  assert.ok(!asksName({...fresh, situation: other, asking: true}));
  assert.ok(asksName({...fresh, situation: other, asking: true, focused: true, named: true}));
  assert.ok(!asksName({...fresh, situation: other, focused: true}));
});

test('suggested names differ, and the car accepts them in all languages', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    register(words(language, 'drawer'));
    const names = Array.from({length: 12}, (_, index) => suggestedCarName(() => (index + 0.5) / 12));
    assert.equal(new Set(names).size, 12, language);
    for (const name of names) assert.ok(name === tidyName(name) && [...name].length <= 24, name);
  }
  register(words('en', 'drawer'));
});

test('typed name loses invisible characters and extra spaces', () => {
  assert.equal(tidyName('  Blue \t  Comet\u200b '), 'Blue Comet');
  assert.equal(tidyName(' \u202e\n '), '');
});
