// Every language says everything that English says, and only that; each word is used. The
// driver's seat and its drawer are covered; the grown-ups' tools that load when they are
// asked for (who may drive, doctor, calibration) and the other pages are in English.

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {readFileSync, readdirSync} from 'node:fs';
import {test} from 'node:test';

import {LANGUAGES} from '../../../web/seat/app.js';
import {sentence} from '../../../web/seat/strings.js';

const ROOT = new URL('../../../web/', import.meta.url);
const PARTS = ['seat', 'drawer'];
/** What shows words of lang/. */
const COVERED = [
  'index.html',
  ...readdirSync(new URL('seat/', ROOT)).filter((name) => /\.(js|html)$/.test(name)).map((name) => `seat/${name}`),
  'calibration/presets.js', 'calibration/sticks.js', 'calibration/sticks-strings.js',
];

/** @param {string} name */
const text = (name) => readFileSync(new URL(name, ROOT), 'utf8');
/** Messages by their path, "causes.blind". @param {object} words @returns {Map<string, string>} */
const flat = (words, prefix = '') => new Map(Object.entries(words).flatMap(([name, one]) =>
  (typeof one === 'string' ? [[prefix + name, one]] : [...flat(one, `${prefix}${name}.`)])));
/** @param {string} language @param {string} part @returns {Promise<Record<string, any>>} */
const words = async (language, part) => (await import(`../../../web/lang/${language}/${part}.js`)).default;
/** @param {string} message */
const places = (message) => [...message.matchAll(/\{\w*\}?/g)].map(([place]) => place).sort();
/** Without the forms of what is counted: languages have their own. @param {Map<string, string>} messages */
const uncounted = (messages) => [...messages.keys()].filter((name) => !/^watchers\./.test(name)).sort();

test('the languages of the menu, of boot.js and of lang/ are the same', () => {
  const there = readdirSync(new URL('lang/', ROOT)).filter((name) => !name.includes('.')).sort();
  assert.deepEqual(Object.keys(LANGUAGES).sort(), there);
  const [, known] = /const known = \[([^\]]*)\]/.exec(text('boot.js')) ?? [];
  assert.deepEqual(known.match(/\w+/g)?.sort(), there);
  const sections = [...text('offline.html').matchAll(/<section lang="(\w+)"/g)].map(([, one]) => one);
  assert.deepEqual(sections.sort(), there);
});

test('no language misses a message, has one too many, or other values in it', async () => {
  for (const part of PARTS) {
    const english = flat(await words('en', part));
    for (const language of Object.keys(LANGUAGES)) {
      const here = flat(await words(language, part));
      assert.deepEqual(uncounted(here), uncounted(english), `${language}/${part}.js`);
      for (const [name, message] of here) {
        const like = english.get(name) ?? english.get('watchers.other') ?? '';
        assert.deepEqual(places(message), places(like), `${language}/${part}.js: ${name}`);
        assert.ok(message.trim() === message && message !== '', `${language}/${part}.js: ${name}`);
      }
    }
  }
});

test('each language has the forms of its own plural', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    const {watchers} = await words(language, 'drawer');
    const rules = new Intl.PluralRules(language);
    for (const count of [0, 1, 2, 5, 21]) assert.ok(watchers[rules.select(count)], `${language}: ${count}`);
  }
});

test('each message is used, and each that is used is there, once', async () => {
  const source = COVERED.map(text).join('\n');
  const [seat, drawer] = await Promise.all(PARTS.map((part) => words('en', part)));
  assert.deepEqual(Object.keys(seat).filter((name) => name in drawer), []);
  const all = {...seat, ...drawer};
  const used = new Set([...source.matchAll(/\bW\.(\w+)|data-t(?:-label)?="(\w+)"/g)].map(([, a, b]) => a ?? b));
  // {details} = W
  for (const [, name] of source.matchAll(/\{(\w+)\} = W;/g)) used.add(name);
  assert.deepEqual([...used].sort(), Object.keys(all).sort());
  const first = [...text('index.html').matchAll(/data-t(?:-label)?="(\w+)"/g)].map(([, name]) => name);
  assert.deepEqual(first.filter((name) => !(name in seat)), [], 'the first screen has its own');
});

test('what stopped and what to do is whole in every language', async () => {
  const by = {driving: true, byUs: false, mayGoOn: false, silenceMs: 250};
  /** @type {any[]} */
  const situations = [
    ...['silence', 'blind', 'estop', 'estop_grown_up', 'wheels_lost', 'wheels_stopped', 'pins', 'new'].flatMap(
      (cause) => ['', 'Ann'].map((name) => ({kind: 'stopped', ...by, stop: {cause, clears: 'neutral', by: name}}))),
    {kind: 'lost', driving: true, stopWaits: false}, {kind: 'lost', driving: false, stopWaits: true},
    {kind: 'late', ms: 320}, {kind: 'wheels', words: 'x'}, {kind: 'camera', words: 'lost: x'},
    {kind: 'taken', by: 'Ann'}, {kind: 'watching', driver: 'Ann', free: false}, {kind: 'battery', wishing: true},
    {kind: 'connecting', stopWaits: true}, {kind: 'parked'}, {kind: 'locked'},
    {kind: 'ready', letGo: true}, {kind: 'driving', limited: true},
  ];
  const {say} = await import('../../../web/lang/words.js');
  const seen = new Set();
  for (const language of Object.keys(LANGUAGES)) {
    say(await words(language, 'seat'));
    for (const situation of situations) {
      const said = sentence(situation);
      assert.ok(said && said.title && said.text.length > 5, `${language}: ${situation.kind}`);
      assert.doesNotMatch(said.title + said.text, /[{}]|\b(undefined|null|NaN)\b/, language);
      seen.add(said.title);
    }
  }
  assert.ok(seen.size > 40, 'they differ');
});

test('a browser that holds the offline page of before fetches the new one', () => {
  const hash = createHash('sha256').update(text('offline.html')).digest('hex').slice(0, 8);
  assert.match(text('offline-worker.js'), new RegExp(`'offline-${hash}'`), 'HOLDS in offline-worker.js');
});
