// Driving rights: a grown-up's list and buttons, on a document of our own.

import assert from 'node:assert/strict';
import {mock, test} from 'node:test';

import {textOf} from '../english.js';
import {LOCALE} from '../../../web/lang/words.js';
import {PEOPLE_STRINGS} from '../../../web/seat/drawer/people-strings.js';
import {PeopleList} from '../../../web/seat/drawer/people.js';

class FakeElement {
  /** @param {string} tag */
  constructor(tag) {
    this.tag = tag;
    this.textContent = '';
    /** @type {any[]} */
    this.children = [];
    this.push = () => {};
  }

  /** @param {any[]} parts */
  append(...parts) {
    this.children.push(...parts);
  }

  /** @param {any[]} parts */
  replaceChildren(...parts) {
    this.children = parts;
  }

  /** @param {string} _ @param {() => void} act */
  addEventListener(_, act) {
    this.push = act;
  }

  getAttribute() {}

  setAttribute() {}

  /** @returns {string} */
  get text() {
    return this.textContent + this.children.map((one) => one.text ?? one).join('');
  }
}

const rest = {away_s: 0, left_s: 0, watches: false};
const mum = {id: 'a1234567', name: 'Mum', where: 'home network', grown_up: true, drives: false, you: true, ...rest};
const ann = {id: 'b1234567', name: 'Ann', where: 'elsewhere', grown_up: false, drives: true, you: false, ...rest};

/** A list on a document of its own, and its sent messages. */
function listed() {
  const hiding = new FakeElement('document');
  const createElement = (/** @type {string} */ tag) => new FakeElement(tag);
  const page = Object.assign(hiding, {createElement, hidden: false});
  Object.assign(globalThis, {document: page});
  const element = new FakeElement('div');
  /** @type {object[]} */
  const sent = [];
  const link = {up: true};
  const who = new PeopleList(/** @type {any} */ (element),
    (message) => link.up && sent.push(message) > 0, /** @type {any} */ (null));
  const rows = () => element.children[1].children;
  return {who, sent, element, link, page, rows, push: () => rows()[1].children[1].push()};
}

test('list is requested every other second while it is visible', () => {
  const {who, sent} = listed();
  for (const visible of [false, true, true, true, false, true]) who.second(visible);
  assert.deepEqual(sent, Array(3).fill({kind: 'who'}));
});

test('people are listed by name, and all but the own entry can be removed', () => {
  const {who, sent, rows, element, push} = listed();
  assert.ok(who.title.hidden, 'no list yet');
  who.update([mum, ann]);
  assert.ok(!who.title.hidden);
  assert.deepEqual(rows().map((/** @type {FakeElement} */ row) => row.text),
    ['Mum you, grown-up, home network', 'Ann driver, at the wheel, elsewhereRemove']);
  push();
  element.children[3].children[0].push();
  assert.deepEqual(sent, [{kind: 'end', id: ann.id}, {kind: 'lock'}], 'locking leaves nothing behind');
});

/** Lets time pass on the page's clock. @param {number} ms */
function pass(ms) {
  nowMs += ms;
}
let nowMs = 1000;
mock.method(performance, 'now', () => nowMs);

test('removal waits 5 s, and can be undone until then', () => {
  const {who, sent, rows, push} = listed();
  who.update([mum, ann]);
  push();
  assert.match(rows()[1].text, /^Ann will be removed in 5\u00a0s.*Undo$/);
  pass(4900);
  who.second(false);
  who.update([mum, {...ann, away_s: 61}]);
  assert.match(rows()[1].text, /Undo$/);
  assert.deepEqual(sent, []);
  push();
  assert.match(rows()[1].text, /Remove$/);
  pass(60_000);
  who.second(false);
  assert.deepEqual(sent, [], 'it was undone');
  push();
  pass(5000);
  who.second(false);
  who.second(false);
  assert.deepEqual(sent, [{kind: 'end', id: ann.id}], 'the menu is closed, and it takes effect');
});

test('removal is sent by a page that goes away, and by a lost link later', () => {
  const {who, sent, link, page, push} = listed();
  who.update([mum, ann]);
  push();
  link.up = false;
  pass(9000);
  who.second(false);
  assert.deepEqual(sent, []);
  link.up = true;
  who.second(false);
  assert.deepEqual(sent, [{kind: 'end', id: ann.id}]);
  push();
  page.push(); // it is visible again
  assert.equal(sent.length, 1);
  page.hidden = true;
  page.push();
  assert.equal(sent.length, 2);
});

test('page without a name is listed in the words of the page', () => {
  const {who, rows} = listed();
  who.update([{...ann, name: 'somebody'}]);
  assert.match(rows()[0].text, /^Someone driver/);
});

test('unchanged list keeps its buttons', () => {
  const {who, rows} = listed();
  who.update([mum, {...ann, away_s: 61}]);
  const [before] = rows();
  who.update([mum, {...ann, away_s: 63}]);
  assert.equal(rows()[0], before);
  who.update([mum]);
  assert.equal(rows().length, 1);
});

test('absence is shown in one unit', () => {
  const says = (/** @type {number} */ away_s) => PEOPLE_STRINGS.describe({...ann, drives: false, away_s});
  assert.equal(says(0), 'driver, elsewhere');
  assert.equal(says(59), 'driver, elsewhere, left just now');
  assert.equal(says(90), 'driver, elsewhere, last seen 2 minutes ago');
  assert.equal(says(7200), 'driver, elsewhere, last seen 2 hours ago');
  assert.equal(says(200_000), 'driver, elsewhere, last seen 2 days ago');
});

test('guest is listed with the end time', () => {
  const says = PEOPLE_STRINGS.describe({...ann, drives: false, left_s: 3600});
  const until = new Date(Date.now() + 3_600_000).toLocaleTimeString(LOCALE, {timeStyle: 'short'});
  assert.equal(says, `driver, until ${until}, elsewhere`);
  const unused = PEOPLE_STRINGS.describe({...ann, drives: false, where: '', away_s: 9, left_s: 3600});
  assert.equal(unused, `driver, until ${until}, not used yet`);
});

test('watcher is listed without an end button', () => {
  const {who, rows} = listed();
  who.update([mum, {...ann, drives: false, watches: true}]);
  assert.deepEqual(rows().map((/** @type {FakeElement} */ row) => row.text),
    ['Mum you, grown-up, home network', 'Ann watching, elsewhere']);
});

test('unsaved list is reported until the car has saved it', () => {
  const {who, element} = listed();
  const [, , unsaved] = element.children;
  who.update([mum]);
  assert.equal(unsaved.hidden, true);
  who.update([mum], textOf('No space left on device'));
  assert.equal(unsaved.hidden, false);
  assert.match(unsaved.text, /cannot save this list \(No space left on device\)/);
  who.update([mum], null);
  assert.deepEqual([unsaved.hidden, unsaved.text], [true, '']);
});
