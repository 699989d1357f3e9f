// Translations have the names of English, and each text is used. A missing translation is shown
// in English: `make check` lists those.

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {readFileSync, readdirSync} from 'node:fs';
import {test} from 'node:test';

import {LANGUAGES} from '../../../web/seat/drawer/app.js';
import {register, t} from '../../../web/lang/words.js';
import {sentence} from '../../../web/seat/strings.js';
import {PARTS, SENT, differences, flat, isForms, untranslated, words} from './translations.js';

/** @import {Messages} from './translations.js' */

const ROOT = new URL('../../../web/', import.meta.url);
/** The first screen and its drawer share one page, and their words stand side by side. */
const TOGETHER = ['seat', 'drawer'];
/** Texts of the car and station, which any page loads. */
const ALL_SENT = ['findings', SENT];
const COUNTS = [0, 1, 2, 5, 21];

/** @param {string} name */
const text = (name) => readFileSync(new URL(name, ROOT), 'utf8');
const files = readdirSync(ROOT, {recursive: true}).map(String).filter((name) => !name.startsWith('lang'));
/** Modules with texts; in others `t` is a time. */
const modules = files.filter((name) => name.endsWith('.js') && text(name).includes('lang/words.js'));
/** Code without the calls that fill the markup: the markup names its words itself, see `named`. */
const source = [...modules, 'lang/forms.js'].map(text).join('\n').replace(/fillStrings\([^)]*\)/g, '');
/** @param {string} language @returns {Messages} */
const wordsOf = (language) => Object.assign({}, ...PARTS.map((part) => words(language, part)));
/** Messages named in a page's markup, by path. @param {string} name of an HTML file */
function named(name) {
  const part = name.replace('.html', '');
  const prefix = PARTS.includes(part) && !TOGETHER.includes(part) ? `t.${part}` : 't';
  return [...text(name).matchAll(/data-t(?:-label)?="(\w+)"/g)].map(([, one]) => `${prefix}.${one}`);
}
/** Pages that show words of lang/. */
const markup = files.filter((name) => name.endsWith('.html') && text(name).includes('data-t'));

/**
 * Unused messages. If an object is taken as a whole, all its messages are used.
 * @param {Messages} all @param {string} code @param {Set<string>} marked @returns {string[]}
 */
const unused = (all, code, marked, path = 't') => Object.entries(all).flatMap(([name, one]) => {
  const here = `${path}.${name}`;
  const whole = new RegExp(`${here.replaceAll('.', '\\.')}\\b(?!\\.\\w)`).test(code);
  const taken = path === 't' && new RegExp(`\\{[^{}]*\\b${name}\\b[^{}]*\\} = t;`).test(code);
  if (whole || taken || marked.has(here)) return [];
  return typeof one === 'string' || isForms(one) ? [here] : unused(one, code, marked, here);
});

test('languages of the menu, boot.js, offline page and lang/ are the same', () => {
  const there = readdirSync(new URL('lang/', ROOT)).filter((name) => !name.includes('.')).sort();
  assert.deepEqual(Object.keys(LANGUAGES).sort(), there);
  const [, known] = /const known = \[([^\]]*)\]/.exec(text('boot.js')) ?? [];
  assert.deepEqual(known.match(/\w+/g)?.sort(), there);
  const sections = [...text('offline.html').matchAll(/<section lang="(\w+)"/g)].map(([, one]) => one);
  assert.deepEqual(sections.sort(), there);
  for (const one of there) {
    const parts = readdirSync(new URL(`lang/${one}/`, ROOT)).map((name) => name.replace('.json', ''));
    assert.ok(parts.includes('seat') && parts.every((part) => [...PARTS, SENT].includes(part)), one);
  }
});

test('pages load boot.js with an existing part of the texts', () => {
  const pages = markup.filter((one) => !one.includes('/'));
  assert.ok(pages.length >= 4);
  for (const name of pages) {
    const [, part] = /<script src="boot.js" data-part="(\w+)">/.exec(text(name)) ?? [];
    assert.ok(PARTS.includes(part), name);
    assert.doesNotMatch(text(name), /<script type="module"/, 'boot.js starts it behind its words');
  }
});

test('translations have only the names of English, and its values', async () => {
  for (const part of [...PARTS, SENT]) {
    const english = words('en', part);
    if (!TOGETHER.includes(part)) assert.deepEqual(Object.keys(english), [part]);
    for (const language of Object.keys(LANGUAGES)) {
      assert.deepEqual(differences(english, language === 'en' ? english : words(language, part)), [], `${language}/${part}.json`);
    }
  }
});

test('differences between languages are found', () => {
  const english = {a: 'It sees {metres}.', b: {c: 'Yes'}, d: {one: '{count} file', other: '{count} files'}};
  assert.deepEqual(differences(english, {...english}), []);
  /** @type {[Messages, RegExp][]} */
  const wrong = [
    [{...english, a: 'Er sieht {meter}.'}, /^a: other values/], [{...english, a: 'Er sieht.'}, /^a: other values/],
    [{...english, a: ' Er sieht {metres}.'}, /^a: " Er/],
    [{...english, e: 'Mehr'}, /^has e/], [{...english, d: {other: '{n} Dateien'}}, /^d: other values/],
    [{...english, d: '{count} Dateien'}, /^d: forms/],
  ];
  for (const [other, says] of wrong) assert.match(differences(english, other).join(), says);
  assert.deepEqual(untranslated(english, {...english, b: {}}), ['b.c']);
  const long = {a: 'Nobody has translated this.'};
  assert.match(differences(long, {...long}).join(), /^a is English/);
});

test('text without a translation is shown in English', () => {
  const english = {demo: {title: 'Title', files: {one: '{count} file', other: '{count} files'}}};
  register(english);
  register({demo: {files: {other: '{count} Dateien'}}});
  assert.deepEqual(/** @type {any} */ (t).demo, {
    title: 'Title', files: {one: '{count} file', other: '{count} Dateien'},
  });
  assert.equal(english.demo.files.other, '{count} files');
});

test('languages have exactly the forms of their plural', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    const rules = new Intl.PluralRules(language);
    const {pluralCategories: known} = rules.resolvedOptions();
    for (const [name, forms] of flat(wordsOf(language))) {
      if (typeof forms === 'string') continue;
      for (const count of COUNTS) assert.ok(forms[rules.select(count)], `${language}: ${name}: ${count}`);
      for (const form of Object.keys(forms)) assert.ok(known.includes(/** @type {any} */ (form)), `${language}: ${name}: ${form}`);
    }
  }
});

test('messages are all used, and all used ones exist once', async () => {
  const all = wordsOf('en');
  const marked = new Set(markup.flatMap(named));
  assert.deepEqual(unused(all, source, marked), []);
  const there = new Set([...flat(all).keys()].map((name) => `t.${name}`));
  assert.deepEqual([...marked].filter((name) => !there.has(name)), []);
  const names = PARTS.map((part) => words('en', part)).flatMap(Object.keys);
  assert.deepEqual(names.sort(), Object.keys(all).sort(), 'no part takes a name of another');
  const seat = words('en', 'seat');
  assert.deepEqual(named('index.html').filter((name) => !(name.slice(2) in seat)), [], 'the first screen has its own');
});

test('refusals for people all have a text', async () => {
  const [, codes = ''] = /CarError \{[^}]*code: ([^;]+);/.exec(text('lib/messages.d.ts')) ?? [];
  // Mistakes of programs, and a wrong code, for which the dialog has its own text.
  const others = ['refused', 'hello_first', 'hello_twice', 'no_seen', 'wrong_code'];
  const expected = (codes.match(/\w+/g) ?? []).filter((code) => !others.includes(code)).sort();
  const {errors} = /** @type {{errors: Messages}} */ (words('en', 'drawer'));
  assert.deepEqual(Object.keys(errors).sort(), expected);
});

test('unused messages are found', () => {
  /** @type {Messages} */
  const all = {a: 'A', b: {c: 'C', d: 'D'}, e: {f: 'F'}, g: {one: '1', other: '2'}};
  assert.deepEqual(unused(all, 't.a t.b.c t.g', new Set()), ['t.b.d', 't.e.f']);
  assert.deepEqual(unused(all, 't.b[x]; const {e} = t;', new Set(['t.a'])), ['t.g']);
});

test('page uses only texts of its own part', async () => {
  for (const name of modules) {
    const [folder] = name.split('/');
    const used = new Set([...text(name).matchAll(/\bt\.(\w+)/g)].map(([, one]) => one));
    const alone = markup.includes(`${folder}.html`);
    const others = PARTS.filter((part) => ![...TOGETHER, ...ALL_SENT, folder].includes(part));
    const strange = [...used].filter((one) => (alone ? one !== folder : others.includes(one)));
    assert.deepEqual(strange, [], name);
  }
});

test('situations have a complete title and text in all languages', async () => {
  const by = {driving: true, byUs: false, mayResume: false, leads: null, silenceMs: 250};
  /** @type {any[]} */
  const situations = [
    ...['silence', 'blind', 'estop', 'estop_grown_up', 'wheels_lost', 'wheels_stopped', 'pins', 'direction', 'resistor', 'settings_lost', 'new'].flatMap(
      (cause) => ['', 'Ann'].map((name) => ({kind: 'stopped', ...by, stop: {cause, clears: 'neutral', by: name}}))),
    ...['code', 'take'].map((leads) => ({kind: 'stopped', ...by, leads, stop: {cause: 'estop', clears: 'resume', by: 'Ann'}})),
    {kind: 'lost', driving: true, stopWaits: false}, {kind: 'lost', driving: false, stopWaits: true},
    {kind: 'late', ms: 320, limitMs: 300}, {kind: 'wheels', words: 'x'}, {kind: 'camera', words: 'x'},
    {kind: 'taken', by: 'Ann'}, {kind: 'watching', driver: 'Ann', free: false}, {kind: 'battery', wishing: true},
    {kind: 'connecting', stopWaits: true}, {kind: 'parked'}, {kind: 'locked'},
    {kind: 'ready', letGo: true}, {kind: 'driving', limited: true},
  ];
  const seen = new Set();
  for (const language of Object.keys(LANGUAGES)) {
    register(words(language, 'seat'));
    for (const situation of situations) {
      const said = sentence(situation);
      assert.ok(said && said.title && said.text.length > 5, `${language}: ${situation.kind}`);
      assert.doesNotMatch(said.title + said.text, /[{}]|\b(undefined|null|NaN)\b/, language);
      assert.doesNotMatch(said.text, /[。！？] /, `${language}: ${situation.kind}`);
      seen.add(said.title);
    }
  }
  assert.ok(seen.size > 40, 'they differ');
});

test('cache name changes with the offline page', () => {
  const hash = createHash('sha256').update(text('offline.html')).digest('hex').slice(0, 8);
  assert.match(text('offline-worker.js'), new RegExp(`'offline-${hash}'`), 'HOLDS in offline-worker.js');
});
