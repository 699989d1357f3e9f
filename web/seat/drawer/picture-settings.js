/** The switch of the map, notes about fewer pictures, and the picture's settings, for grown-ups: size,
 * rate, view, flip, exposure, brightness, night. They load with the drawer; settings the camera lacks
 * are hidden. */

import {fill, number, said, t} from '../../lang/words.js';
import {button, byId, input, make, setText, show} from '../../lib/dom.js';
import {askJson} from '../../lib/http.js';
import {saved} from '../../lib/storage.js';
import {FPS_MOST} from '../../video/remedy.js';
import {Pace} from '../link/pace.js';
import {toast} from '../toast.js';
import {DRAWER_STRINGS, paceText} from './drawer-strings.js';

/** @import {PictureChange, State, Text, Upward} from '../../lib/types.js' */
/** @typedef {Required<PictureChange> & {can: string[], mode: Text[]}} Settings */

const SIZES = ['320 × 240', '640 × 480', '960 × 720', '1280 × 720', '1920 × 1080'];
const RATES = [10, 15, 20, 25, 30, 60];
/** @type {Settings['view'][]} */
const VIEWS = ['whole', 'fast'];
/** @type {Settings['flip'][]} */
const FLIPS = ['none', 'horizontal', 'vertical', 'both'];
/** @type {Settings['exposure'][]} */
const EXPOSURES = ['normal', 'sport', 'long'];
/** A camera's process has started by then, on the slowest board that has a page open. */
const AGAIN_MS = 1500;

/**
 * The choices with the current value among them, sorted. Pure.
 * @template {string | number} T
 * @param {T[]} choices @param {T} now
 */
export function withNow(choices, now) {
  if (choices.includes(now)) return choices;
  const size = (/** @type {T} */ choice) => parseFloat(String(choice));
  return [...choices, now].sort((a, b) => size(a) - size(b));
}

/** The text of a choice, or the choice itself. @param {Record<string, string>} texts @param {string} choice */
const textOf = (texts, choice) => texts[choice] ?? choice;

/** "640 × 480" -> its numbers. @param {string} size */
export function sizeOf(size) {
  const [width, height] = size.split(' × ').map(Number);
  return {width: width ?? 0, height: height ?? 0};
}

/** Switch of the map of the drive, which is off at first and loads when it is switched on. */
class PathSwitch {
  constructor() {
    this.box = input('path');
    this.clear = button('path-clear');
    /** @type {import('../hud/path_map.js').PathMap | null} */
    this.map = null;
    this.box.checked = saved.get('path') === 'yes';
    this.box.addEventListener('change', () => {
      saved.set('path', this.box.checked ? 'yes' : '');
      void this.apply();
    });
    this.clear.addEventListener('click', () => this.map?.path.clear());
    void this.apply();
  }

  async apply() {
    const {PathMap} = this.box.checked ? await import('../hud/path_map.js') : {};
    this.map = PathMap && this.box.checked ? new PathMap() : null;
    for (const element of [this.clear, byId('path-map')]) show(element, this.map !== null);
  }
}

/** Notes about fewer pictures: for a slow device, or by the car. */
export class PictureNotes {
  /** @param {() => Pick<import('../../video/video.js').Video, 'behind' | 'count' | 'rate'>} video the large picture's */
  constructor(video) {
    this.video = video;
    this.pace = new Pace();
    this.last = {bytes: video().count.bytes, atMs: performance.now()};
    this.most = FPS_MOST;
    /** @type {Text | null} */
    this.lowered = null;
  }

  /** Begins anew with another large picture, as its figures are differences. */
  restart() {
    this.pace = new Pace();
    this.last = {bytes: this.video().count.bytes, atMs: performance.now()};
  }

  /** Bits per second since the last call. */
  bitsPerS() {
    const {last} = this;
    this.last = {bytes: this.video().count.bytes, atMs: performance.now()};
    return 8 * (this.last.bytes - last.bytes) / Math.max(0.1, (this.last.atMs - last.atMs) / 1000);
  }

  /**
   * Another second: asks for fewer pictures if this device is too slow, and says so.
   * @param {import('../link/pace.js').Counts} counts
   */
  second(counts) {
    const before = this.pace.slow;
    const video = this.video();
    const slow = this.pace.second(counts, performance.now());
    if (slow && !before && video.behind(true)) this.pace = new Pace();
    const {most} = video.rate;
    if (this.pace.slow) note('pace-says', paceText(this.pace, isSecureContext), !before);
    else note('pace-says', most < FPS_MOST ? fill(t.fewer, {fps: number(most)}) : '', most < this.most);
    this.most = most;
  }

  /** Shows why the camera has fewer pictures than its settings. @param {import('../../lib/types.js').State} state */
  update({lowered_rate: lowered = null}) {
    note('rate-says', said(lowered), said(lowered) !== said(this.lowered));
    this.lowered = lowered;
  }
}

/** @param {string} id @param {string} text @param {boolean} news */
function note(id, text, news) {
  show(byId(id), text !== '');
  setText(byId(id), text);
  if (text && news) toast(text, 'warn');
}

export class PictureSettings {
  /** @param {HTMLElement} place @param {(message: Upward) => void} send */
  constructor(place, send) {
    this.send = send;
    this.path = new PathSwitch();
    this.box = document.createElement('details');
    this.box.dataset.testid = 'picture-settings';
    this.fields = document.createElement('div');
    this.hint = make('p', t.pictureSettings.hint);
    this.hint.className = 'hint';
    this.box.append(make('summary', t.pictureSettings.title), this.fields, this.hint);
    this.box.addEventListener('toggle', () => this.box.open && this.load());
    show(this.box, false);
    place.append(this.box);
  }

  /** @param {State} state */
  update(state) {
    this.path.map?.update(state);
    show(this.box, state.grown_up);
    if (!state.grown_up) this.box.open = false;
  }

  /** Asks the car how its picture is set, and shows it. */
  async load() {
    try {
      this.render(await askJson('api/picture'));
    } catch {
      this.fields.replaceChildren(make('p', t.pictureSettings.silent));
      show(this.hint, false);
    }
  }

  /** @param {PictureChange} to */
  set(to) {
    this.send({kind: 'picture', to});
    setTimeout(() => this.load(), AGAIN_MS);
  }

  /** @param {Settings} now */
  render(now) {
    const texts = t.pictureSettings;
    const size = `${now.width} × ${now.height}`;
    /** @type {[string, HTMLElement][]} */
    const rows = [
      ['width', select('size', texts.size, withNow(SIZES, size), size, String,
        (value) => this.set(sizeOf(value)))],
      ['fps', select('rate', texts.rate, withNow(RATES, now.fps), now.fps, DRAWER_STRINGS.perSecond,
        (value) => this.set({fps: value}))],
      ['view', select('view', texts.view, VIEWS, now.view, (value) => textOf(texts.views, value),
        (value) => this.set({view: value}))],
      ['flip', select('flip', texts.flip, FLIPS, now.flip, (value) => textOf(texts.flips, value),
        (value) => this.set({flip: value}))],
      ['exposure', select('exposure', texts.exposure, EXPOSURES, now.exposure,
        (value) => textOf(texts.exposures, value), (value) => this.set({exposure: value}))],
      ['brightness', slider(texts.brightness, now.brightness,
        (value) => this.set({brightness: value}))],
      ['night', check(texts.night, now.night, (on) => this.set({night: on}))],
    ];
    const shown = rows.filter(([name]) => now.can.includes(name)).map(([, row]) => row);
    const mode = now.mode.map((text) => make('p', said(text)));
    this.fields.replaceChildren(...(shown.length ? shown : [make('p', texts.none)]), ...mode);
    show(this.hint, shown.length > 0);
  }
}

/**
 * @template {string | number} T
 * @param {string} id @param {string} label @param {T[]} choices @param {T} now
 * @param {(choice: T) => string} format @param {(choice: T) => void} act
 */
function select(id, label, choices, now, format, act) {
  const field = document.createElement('select');
  field.dataset.testid = `picture-${id}`;
  for (const choice of choices) {
    const option = new Option(format(choice), String(choice), false, choice === now);
    field.append(option);
  }
  field.addEventListener('change', () => act(choices[field.selectedIndex]));
  return labelled(label, field);
}

/** @param {string} label @param {number} now @param {(value: number) => void} act */
function slider(label, now, act) {
  const field = document.createElement('input');
  Object.assign(field, {type: 'range', min: '-1', max: '1', step: '0.1', value: String(now)});
  field.dataset.testid = 'picture-brightness';
  field.addEventListener('change', () => act(Number(field.value)));
  return labelled(label, field);
}

/** @param {string} text @param {boolean} now @param {(on: boolean) => void} act */
function check(text, now, act) {
  const field = document.createElement('input');
  Object.assign(field, {type: 'checkbox', checked: now});
  field.dataset.testid = 'picture-night';
  field.addEventListener('change', () => act(field.checked));
  const label = document.createElement('label');
  label.className = 'check';
  label.append(field, ' ', make('span', text));
  return label;
}

/** @param {string} text @param {HTMLElement} field */
function labelled(text, field) {
  const label = document.createElement('label');
  label.append(make('span', text), field);
  return label;
}
