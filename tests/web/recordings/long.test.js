// A drive of hours on the recordings page: few points of each part, one drawing a frame.

import assert from 'node:assert/strict';
import {beforeEach, mock, test} from 'node:test';

import '../english.js';
import {API} from '../../../web/recordings/api.js';
import {bucketOf, pointsOf} from '../../../web/recordings/drives.js';
import {Plots} from '../../../web/recordings/plots/plots.js';
import {driveOfFiles, file} from './files.js';

/** @param {number} count of files, a minute each */
function drive(count) {
  return driveOfFiles(...Array.from({length: count}, (_, index) =>
    file(`Plague-20251121T200000Z-${String(index).padStart(4, '0')}.mcap`, index * 60)));
}

test('number of points of a line is independent of the length of the drive', () => {
  for (const count of [1, 7, 60, 480]) {
    const points = pointsOf(drive(count));
    assert.ok(points * count >= 1200 && points * count <= 1700, `${points} of ${count}`);
  }
  assert.equal(pointsOf(drive(3000)), 2, 'the least and the greatest of each part');
  assert.deepEqual([1, 20, 480, 3000].map((count) => bucketOf(drive(count))), [0.1, 2, 60, 60]);
});

test('value from the extremes of a minute is shown as approximate', () => {
  for (const [count, words] of /** @type {[number, string][]} */ ([[20, '3.00\u00a0m'], [480, '≈\u00a03.00\u00a0m']])) {
    const page = plots();
    page.clear(count * 60, bucketOf(drive(count)));
    page.add(table('range', 3), 0);
    page.cursor(15);
    assert.equal(page.plots.get('range')?.lines.get('range/one')?.value.textContent, words);
  }
});

test('table request has the number of points', async () => {
  const asked = mock.method(globalThis, 'fetch', async () => new Response('{}'));
  try {
    await API.table('a b.mcap', 3);
  } finally {
    asked.mock.restore();
  }
  assert.equal(asked.mock.calls[0].arguments[0], 'api/recordings/a%20b.mcap/table?points=3');
});

/** As much of an element as a plot needs. */
class FakeElement {
  /** @type {FakeElement[]} */
  children = [];
  /** @type {Record<string, string>} */
  dataset = {};
  style = {setProperty: () => {}};
  textContent = '';
  /** @type {Map<string, string>} */
  marks = new Map();

  /** @param {FakeElement[]} more */
  append(...more) {
    this.children.push(...more);
  }

  /** @param {FakeElement} one */
  insertBefore(one) {
    this.children.push(one);
  }

  replaceChildren() {
    this.children = [];
  }

  querySelector() {
    return this.children[0];
  }

  addEventListener() {}
  clientWidth = 400;

  /** @param {string} name */
  getAttribute(name) {
    return this.marks.get(name) ?? null;
  }

  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.marks.set(name, value);
  }
}

/** @type {(() => void)[]} */
let frames = [];
const frame = () => frames.splice(0).forEach((act) => act());
beforeEach(() => {
  frames = [];
  const made = () => new FakeElement();
  Object.assign(globalThis, {
    document: {createElement: made, createElementNS: made},
    addEventListener: () => {},
    ResizeObserver: class {
      observe() {}
    },
    requestAnimationFrame: (/** @type {() => void} */ act) => frames.push(act),
  });
});

/** @param {string} group @param {number} value */
const table = (group, value) => ({
  start_ms: 0, seconds: 60, reasons: [], marks: [], gaps: [],
  series: [{group, name: 'one', unit: 'm', t: [0, 30], v: [value, value]}],
});
const plots = () => new Plots(/** @type {any} */ (new FakeElement()), {
  seek: () => {}, look: () => {}, changed: () => {},
});

/** @param {Plots} page */
const line = (page) => String(
  page.plots.get('range')?.lines.get('range/one')?.path.getAttribute('d'));

test('parts that arrive within a frame are drawn once, and only changed plots', () => {
  const page = plots();
  const draw = mock.method(page, 'draw');
  page.clear(480 * 60, bucketOf(drive(480)));
  for (let part = 0; part < 100; part += 1) page.add(table('range', part), part * 60);
  assert.deepEqual([draw.mock.callCount(), frames.length], [0, 1]);
  frame();
  assert.equal(draw.mock.callCount(), 1);
  const path = line(page);
  assert.match(path, /^M0 [^M]*L207\.3 [^M]*$/, 'one line, as far as it came');
  page.add(table('battery', 7), 6000);
  frame();
  assert.equal(draw.mock.callCount(), 2, 'the distances did not change');
  assert.equal(frames.length, 0);
  assert.equal(page.lines.get('range/one')?.v.filter((value) => value !== null).length, 200);
});

test('data of a closed drive is not drawn', () => {
  const page = plots();
  const draw = mock.method(page, 'draw');
  page.clear(60, 0);
  page.add(table('range', 1), 0);
  page.clear(60, 0);
  page.add(table('battery', 7), 0);
  frame();
  assert.equal(draw.mock.callCount(), 1);
  assert.deepEqual([...page.plots.keys()], ['battery']);
});

test('zoomed range is drawn with finer values if they are loaded', () => {
  const page = plots();
  page.clear(120, 30);
  page.add(table('range', 1), 0);
  page.add(table('range', 5), 60);
  frame();
  assert.equal(page.change((view) => view.set(60, 90)), true);
  assert.equal(page.change((view) => view.set(60, 90)), false);
  frame();
  assert.equal(line(page), 'M0 0h.1L1000 0');
  const fine = table('range', 2);
  page.replace({...fine, series: [{...fine.series[0], t: [0, 15, 30], v: [2, 4, 5]}]}, 60, 0.1);
  frame();
  assert.equal(line(page), 'M0 60h.1L500 20L1000 0');
  page.cursor(76);
  const value = () => page.plots.get('range')?.lines.get('range/one')?.value.textContent;
  assert.equal(value(), '4.00\u00a0m', 'fine enough to be said');
  page.hover(10);
  assert.equal(value(), '≈\u00a01.00\u00a0m', 'under the pointer');
  page.hover(null);
  assert.equal(value(), '4.00\u00a0m', 'the picture\'s again');
  page.cursor(100);
  assert.deepEqual([page.view.fromS, page.view.toS], [90, 120], 'it goes along');
  clearTimeout(page.settled);
});
