// Driving rights: a grown-up's list and buttons, on a document of our own.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
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
  Object.assign(globalThis, {document: {createElement: (/** @type {string} */ tag) => new FakeElement(tag)}});
  const element = new FakeElement('div');
  /** @type {object[]} */
  const sent = [];
  const who = new PeopleList(/** @type {any} */ (element), (message) => void sent.push(message));
  return {who, sent, element, rows: () => element.children[1].children};
}

test('list is requested every other second while it is visible', () => {
  const {who, sent} = listed();
  for (const visible of [false, true, true, true, false, true]) who.second(visible);
  assert.deepEqual(sent, Array(3).fill({kind: 'who'}));
});

test('people are listed by name, and all but the own entry can be ended', () => {
  const {who, sent, rows, element} = listed();
  who.update([mum, ann]);
  assert.deepEqual(rows().map((/** @type {FakeElement} */ row) => row.text),
    ['Mum you, grown-up, home network', 'Ann driver, at the wheel, elsewhereRemove']);
  rows()[1].children[1].push();
  element.children[3].children[0].push();
  assert.deepEqual(sent, [{kind: 'end', id: ann.id}, {kind: 'lock'}]);
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
  who.update([mum], 'No space left on device');
  assert.equal(unsaved.hidden, false);
  assert.match(unsaved.text, /cannot save this list \(No space left on device\)/);
  who.update([mum], '');
  assert.deepEqual([unsaved.hidden, unsaved.text], [true, '']);
});
