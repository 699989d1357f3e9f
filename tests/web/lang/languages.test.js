// Every language has exactly the messages of English; each message is used. The children's page,
// and that of fpvcar hil, are in English alone.

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {readFileSync, readdirSync} from 'node:fs';
import {test} from 'node:test';

import {LANGUAGES} from '../../../web/seat/app.js';
import {sentence} from '../../../web/seat/strings.js';

/** @typedef {{[name: string]: string | Messages}} Messages */

const ROOT = new URL('../../../web/', import.meta.url);
const PARTS = readdirSync(new URL('lang/en/', ROOT)).map((name) => name.replace('.js', '')).sort();
/** The first screen and its drawer share one page, and their words stand side by side. */
const TOGETHER = ['seat', 'drawer'];
const COUNTS = [0, 1, 2, 5, 21];
const FORMS = ['zero', 'one', 'two', 'few', 'many', 'other'];

/** @param {string} name */
const text = (name) => readFileSync(new URL(name, ROOT), 'utf8');
const files = readdirSync(ROOT, {recursive: true}).map(String).filter((name) => !name.startsWith('lang'));
const modules = files.filter((name) => name.endsWith('.js'));
/** Code without the calls that fill the markup: the markup names its words itself, see `named`. */
const source = modules.map(text).join('\n').replace(/fillStrings\([^)]*\)/g, '');
/** @param {string} language @param {string} part @returns {Promise<Messages>} */
const words = async (language, part) => (await import(`../../../web/lang/${language}/${part}.js`)).default;
/** @param {string} language @returns {Promise<Messages>} */
const wordsOf = async (language) =>
  Object.assign({}, ...await Promise.all(PARTS.map((part) => words(language, part))));
/** Forms of a counted noun. @param {string | Messages} one @returns {one is Record<string, string>} */
const isForms = (one) => typeof one === 'object' && Object.keys(one).every((form) => FORMS.includes(form));
/**
 * Messages by their path, "causes.blind"; counted ones as their forms.
 * @param {Messages} all @returns {Map<string, string | Record<string, string>>}
 */
const flat = (all, prefix = '') => new Map(Object.entries(all).flatMap(([name, one]) =>
  (typeof one === 'string' || isForms(one) ? [[prefix + name, one]] : [...flat(one, `${prefix}${name}.`)])));
/** @param {string} message */
const places = (message) => [...message.matchAll(/\{\w*\}?/g)].map(([place]) => place).sort();

/**
 * Differences of a language from English: names, values in the messages, empty ones, English ones.
 * @param {Messages} english @param {Messages} other
 */
function differences(english, other) {
  const [asked, here] = [flat(english), flat(other)];
  const missing = [...asked.keys()].filter((name) => !here.has(name)).map((name) => `misses ${name}`);
  const wrong = [...here].flatMap(([name, message]) => {
    const like = asked.get(name);
    if (like === undefined) return [`has ${name}, which English has not`];
    if (isForms(like) !== isForms(message)) return [`${name}: forms in one of them only`];
    const wanted = isForms(like) ? like.other : like;
    const all = typeof message === 'string' ? [message] : Object.values(message);
    return all.flatMap((one) => [
      places(one).join() === places(wanted).join() ? '' : `${name}: other values: ${one}`,
      one.trim() === one && one !== '' ? '' : `${name}: "${one}"`,
      one === wanted && one.length > 20 && english !== other ? `${name} is English: ${one}` : '',
    ]).filter(Boolean);
  });
  return [...missing, ...wrong];
}

/** Messages named in a page's markup, by path. @param {string} name of an HTML file */
function named(name) {
  const part = name.replace('.html', '');
  const prefix = PARTS.includes(part) && !TOGETHER.includes(part) ? `W.${part}` : 'W';
  return [...text(name).matchAll(/data-t(?:-label)?="(\w+)"/g)].map(([, one]) => `${prefix}.${one}`);
}
/** Pages that show words of lang/. */
const markup = files.filter((name) => name.endsWith('.html') && text(name).includes('data-t'));

/**
 * Unused messages. If an object is taken as a whole, all its messages are used.
 * @param {Messages} all @param {string} code @param {Set<string>} marked @returns {string[]}
 */
const unused = (all, code, marked, path = 'W') => Object.entries(all).flatMap(([name, one]) => {
  const here = `${path}.${name}`;
  const whole = new RegExp(`${here.replaceAll('.', '\\.')}\\b(?!\\.\\w)`).test(code);
  const taken = path === 'W' && new RegExp(`\\{[^{}]*\\b${name}\\b[^{}]*\\} = W;`).test(code);
  if (whole || taken || marked.has(here)) return [];
  return typeof one === 'string' || isForms(one) ? [here] : unused(one, code, marked, here);
});

test('the languages of the menu, of boot.js and of lang/ are the same', () => {
  const there = readdirSync(new URL('lang/', ROOT)).filter((name) => !name.includes('.')).sort();
  assert.deepEqual(Object.keys(LANGUAGES).sort(), there);
  const [, known] = /const known = \[([^\]]*)\]/.exec(text('boot.js')) ?? [];
  assert.deepEqual(known.match(/\w+/g)?.sort(), there);
  const sections = [...text('offline.html').matchAll(/<section lang="(\w+)"/g)].map(([, one]) => one);
  assert.deepEqual(sections.sort(), there);
  for (const one of there) {
    const parts = readdirSync(new URL(`lang/${one}/`, ROOT)).map((name) => name.replace('.js', ''));
    assert.deepEqual(parts.sort(), PARTS, one);
  }
});

test('each page asks for a language, and for words that are there', () => {
  const pages = markup.filter((one) => !one.includes('/'));
  assert.ok(pages.length >= 4);
  for (const name of pages) {
    const [, part] = /<script src="boot.js" data-part="(\w+)">/.exec(text(name)) ?? [];
    assert.ok(PARTS.includes(part), name);
    assert.doesNotMatch(text(name), /<script type="module"/, 'boot.js starts it behind its words');
  }
});

test('no language misses a message, has one too many, or other values in it', async () => {
  for (const part of PARTS) {
    const english = await words('en', part);
    if (!TOGETHER.includes(part)) assert.deepEqual(Object.keys(english), [part]);
    for (const language of Object.keys(LANGUAGES)) {
      assert.deepEqual(differences(english, await words(language, part)), [], `${language}/${part}.js`);
    }
  }
});

test('what differs between languages is found', () => {
  const english = {a: 'It sees {metres}.', b: {c: 'Yes'}, d: {one: '{count} file', other: '{count} files'}};
  assert.deepEqual(differences(english, {...english}), []);
  /** @type {[Messages, RegExp][]} */
  const wrong = [
    [{...english, a: 'Er sieht {meter}.'}, /^a: other values/], [{...english, a: 'Er sieht.'}, /^a: other values/],
    [{...english, a: ' Er sieht {metres}.'}, /^a: " Er/], [{...english, b: {}}, /^misses b\.c/],
    [{...english, e: 'Mehr'}, /^has e/], [{...english, d: {other: '{n} Dateien'}}, /^d: other values/],
    [{...english, d: '{count} Dateien'}, /^d: forms/],
  ];
  for (const [other, says] of wrong) assert.match(differences(english, other).join(), says);
  const long = {a: 'Nobody has translated this.'};
  assert.match(differences(long, {...long}).join(), /^a is English/);
});

test('each language has the forms of its own plural', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    const rules = new Intl.PluralRules(language);
    const {pluralCategories: known} = rules.resolvedOptions();
    for (const [name, forms] of flat(await wordsOf(language))) {
      if (typeof forms === 'string') continue;
      for (const count of COUNTS) assert.ok(forms[rules.select(count)], `${language}: ${name}: ${count}`);
      for (const form of Object.keys(forms)) assert.ok(known.includes(/** @type {any} */ (form)), `${language}: ${name}: ${form}`);
    }
  }
});

test('each message is used, and each that is used is there, once', async () => {
  const all = await wordsOf('en');
  const marked = new Set(markup.flatMap(named));
  assert.deepEqual(unused(all, source, marked), []);
  const there = new Set([...flat(all).keys()].map((name) => `W.${name}`));
  assert.deepEqual([...marked].filter((name) => !there.has(name)), []);
  const names = (await Promise.all(PARTS.map((part) => words('en', part)))).flatMap(Object.keys);
  assert.deepEqual(names.sort(), Object.keys(all).sort(), 'no part takes a name of another');
  const seat = await words('en', 'seat');
  assert.deepEqual(named('index.html').filter((name) => !(name.slice(2) in seat)), [], 'the first screen has its own');
});

test('what nothing names is found', () => {
  /** @type {Messages} */
  const all = {a: 'A', b: {c: 'C', d: 'D'}, e: {f: 'F'}, g: {one: '1', other: '2'}};
  assert.deepEqual(unused(all, 'W.a W.b.c W.g', new Set()), ['W.b.d', 'W.e.f']);
  assert.deepEqual(unused(all, 'W.b[x]; const {e} = W;', new Set(['W.a'])), ['W.g']);
});

test('a page takes the words that it has, and no other page’s', async () => {
  for (const name of modules) {
    const [folder] = name.split('/');
    const used = new Set([...text(name).matchAll(/\bW\.(\w+)/g)].map(([, one]) => one));
    const alone = markup.includes(`${folder}.html`);
    const others = PARTS.filter((part) => !TOGETHER.includes(part) && part !== folder);
    const strange = [...used].filter((one) => (alone ? one !== folder : others.includes(one)));
    assert.deepEqual(strange, [], name);
  }
});

test('what stopped and what to do is whole in every language', async () => {
  const by = {driving: true, byUs: false, mayGoOn: false, silenceMs: 250};
  /** @type {any[]} */
  const situations = [
    ...['silence', 'blind', 'estop', 'estop_grown_up', 'wheels_lost', 'wheels_stopped', 'pins', 'direction', 'new'].flatMap(
      (cause) => ['', 'Ann'].map((name) => ({kind: 'stopped', ...by, stop: {cause, clears: 'neutral', by: name}}))),
    {kind: 'lost', driving: true, stopWaits: false}, {kind: 'lost', driving: false, stopWaits: true},
    {kind: 'late', ms: 320}, {kind: 'wheels', words: 'x'}, {kind: 'camera', words: 'x'},
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
