/** Calibration, for a grown-up: its steps, all values and changes, in a sheet. Loaded on
 * demand. Movements are sent as ordinary wishes. */

import {clauses, titled} from '../lang/forms.js';
import {joined, said, t} from '../lang/words.js';
import {downloads, make, setText} from '../lib/dom.js';
import {Refused} from '../lib/http.js';
import {saved} from '../lib/storage.js';
import {API} from './api.js';
import {actionButton, check, figure, fold, paragraph, row} from './fields.js';
import {Hold} from './hold.js';
import {Motion, grab} from './motion.js';
import {StepView} from './step.js';
import {STRINGS} from './strings.js';

/** @import {All, CalibratedValue, Step} from './api.js' */
/** @import {Wish} from '../lib/types.js' */

const ASK_MS = 100;
/** Key under which this device remembers the step at which its run was left. */
const LEFT_AT = 'calibration';
/** @type {[keyof typeof t.calibration.groups, string[]][]} */
const GROUPS = [
  ['floor', ['resistor']], ['air', ['neutral', 'direction', 'dead_band', 'dead_band_us', 'ends']], ['floor', ['straight', 'speed']],
  ['still', ['distance', 'battery']],
];

export class Calibration {
  /**
   * @param {{set: (wish: Wish) => void, releases: (() => void)[], take: () => void,
   *   driving: () => boolean, kept: () => void}} parts
   *   `kept` is called when values have changed
   */
  constructor(parts) {
    this.place = make('div', '');
    this.parts = parts;
    this.hold = new Hold({set: parts.set, changed: (held) => this.view?.held(held)});
    parts.releases.push(() => this.hold.up());
    /** @type {StepView | null} */
    this.view = null;
    this.fault = paragraph('', 'fault');
    this.fault.setAttribute('role', 'alert');
    /** @type {All['steps']} */
    this.steps = [];
    this.motion = new Motion();
    this.looks = false;
    this.told = false;
    this.keeps = false;
    this.style();
  }

  style() {
    const link = document.createElement('link');
    Object.assign(link, {rel: 'stylesheet', href: new URL('calibration.css', import.meta.url).href});
    document.head.append(link);
  }

  /** Shows the list of steps in a new sheet. @param {HTMLElement} place */
  openIn(place) {
    this.place = place;
    return this.open();
  }

  /** Shows all that there is; a step that goes on ends. @param {string} [news] */
  async open(news = '') {
    this.close();
    await this.tried(async () => this.list(await API.all(), news));
    this.place.scrollIntoView({block: 'start'});
  }

  /** The step's view is gone; the car stands. */
  close() {
    this.hold.up();
    this.view = null;
  }

  /** Follows the seat, which knows whether the car can move. @param {boolean} can */
  setCanMove(can) {
    if (!can) this.hold.up();
    this.hold.canMove = can;
    this.view?.setCanMove(can);
  }

  /** Runs an act and shows the car's refusal; false for one. @param {() => Promise<unknown>} act */
  async tried(act) {
    let message = '';
    try {
      await act();
    } catch (fault) {
      message = fault instanceof Refused ? fault.message : t.carSilent;
    }
    const {fault} = this.view ?? this;
    if (message && !fault.isConnected) {
      this.place.replaceChildren(fault, actionButton(t.calibration.all, () => this.open()));
    }
    setText(fault, message);
    return message === '';
  }

  // --- the list ---

  /** @param {All} all @param {string} [news] */
  list(all, news = '') {
    this.steps = all.steps;
    const left = this.steps.findIndex(({kind, of}) => `${kind} ${of}` === saved.get(LEFT_AT));
    const start = actionButton(left < 0 ? STRINGS.start(this.steps.length) : STRINGS.resume(left, this.steps.length),
      () => this.go(Math.max(0, left)), 'calibration-start');
    start.className = 'primary';
    const status = paragraph(news || t.calibration.hint);
    status.setAttribute('role', 'status');
    status.dataset.testid = 'calibration-says';
    const faults = all.faults.map((text) => paragraph(said(text), 'fault'));
    const groups = GROUPS.flatMap(([group, kinds]) => {
      const steps = all.steps.filter(({kind}) => kinds.includes(kind));
      return steps.length ? [make('h3', t.calibration.groups[group]), this.listed(steps, all)] : [];
    });
    const link = document.createElement('a');
    Object.assign(link, {textContent: t.calibration.download, className: 'button'});
    downloads(link, 'api/calibration/profile', 'car.toml');
    const undo = actionButton(t.calibration.undo, () =>
      this.tried(async () => {
        this.list(await API.undo(), t.calibration.undone);
        this.parts.kept();
      }), 'calibration-undo');
    undo.disabled = !all.undoable;
    const fields = all.values.map((value) => this.value(value));
    this.place.replaceChildren(status, this.fault, ...faults, start, ...groups, row([undo]),
      fold(t.calibration.values, fields, 'calibration-values'),
      fold(t.calibration.history, [history(all)], 'calibration-history'), row([link]));
    start.focus({preventScroll: true});
  }

  /** @param {All['steps']} steps @param {All} all */
  listed(steps, all) {
    const list = make('ul', '');
    list.className = 'calibration-steps';
    for (const {kind, of} of steps) {
      const what = `${kind} ${of}`.trim();
      const item = make('li', '');
      item.append(actionButton(STRINGS.stepTitle(kind, of), () => this.begin(kind, of), `begin-${what.replace(' ', '-')}`));
      const last = all.changes.filter((change) => change.what === what).at(-1);
      if (last) item.append(make('small', STRINGS.when(last.utc_s)));
      list.append(item);
    }
    return list;
  }

  /** A value that may be typed. @param {CalibratedValue} known */
  value({key, value, own}) {
    const set = (/** @type {import('./api.js').Value} */ to) =>
      this.tried(async () => {
        await API.set(key, to);
        this.parts.kept();
        const box = this.place.querySelector(`[data-key="${key}"] small`);
        if (box) setText(box, joined(t.calibration.kept, STRINGS.own(own)));
      });
    const row = make('div', '');
    row.dataset.key = key;
    if (typeof value === 'boolean') {
      row.append(check(STRINGS.name(key), value, set, key));
    } else if (typeof value === 'number') {
      const {field, label} = figure(STRINGS.name(key), key, Math.round(value * 1e4) / 1e4);
      field.addEventListener('change', () => set(field.valueAsNumber));
      row.append(label);
    } else {
      row.append(paragraph(titled(STRINGS.name(key), STRINGS.value(value))));
    }
    row.append(make('small', STRINGS.own(own)));
    return row;
  }

  // --- a step ---

  /** Goes to a step of the run; before the first and after the last is the list. @param {number} at @param {string} [news] */
  go(at, news = '') {
    this.close();
    const step = this.steps[at];
    if (step) return this.begin(step.kind, step.of, news);
    if (at > 0) saved.set(LEFT_AT, '');
    return this.tried(() => API.end()).then(() => this.open(at > 0 ? joined(news, t.calibration.finished) : ''));
  }

  /** @param {string} kind @param {string} of @param {string} [news] */
  async begin(kind, of, news = '') {
    const at = this.steps.findIndex((step) => step.kind === kind && step.of === of);
    await this.tried(async () => {
      const step = await API.begin(kind, of);
      saved.set(LEFT_AT, `${kind} ${of}`);
      /** @type {StepView} */
      const view = new StepView(step, {
        hold: this.hold, take: this.parts.take, at, count: this.steps.length, news,
        say: (word, figures) => this.tried(async () =>
          this.heard(view, await API.say(word, figures ?? []))),
        keep: async () => {
          this.hold.up();
          this.keeps = true; // keeping ends the step: do not report its absence
          if (await this.tried(() => API.keep())) {
            this.parts.kept();
            await this.go(at + 1, t.calibration.kept);
          }
          this.keeps = false;
        },
        back: () => void this.go(at - 1),
        skip: () => void this.go(at + 1),
        all: () => void this.go(-1),
      });
      this.view = view;
      view.setCanMove(this.hold.canMove);
      this.motion = new Motion();
      this.looks = this.told = false;
      if (kind.startsWith('dead_band')) {
        view.answers.append(check(t.calibration.camera, false, (on) => { this.looks = on; }, 'calibration-camera'));
      }
      this.place.replaceChildren(view.element);
      view.title.focus();
      this.heard(view, step);
      void this.follow(view);
    });
  }

  /** Polls the car's step until it changes or ends. @param {StepView} view */
  async follow(view) {
    while (this.view === view) {
      await new Promise((done) => setTimeout(done, ASK_MS));
      if (this.view !== view) return;
      if (document.visibilityState === 'hidden' || this.place.offsetWidth === 0) {
        this.hold.up();
        continue; // after some seconds the car ends the step
      }
      try {
        const step = await API.step();
        if (this.view !== view) return;
        if (this.keeps) continue;
        if (step === null) {
          await this.open(t.calibration.ended);
          return;
        }
        this.heard(view, step);
        await this.watch(view, step);
      } catch (fault) {
        setText(view.fault, fault instanceof Refused ? fault.message : t.carSilent);
      }
    }
  }

  /** @param {StepView} view @param {Step} step */
  heard(view, step) {
    if (this.view !== view) return;
    this.hold.hear(step.wish);
    const driving = this.parts.driving();
    if (!driving) this.hold.up();
    view.update(step, driving);
  }

  /** Watches the picture if that option is on. @param {StepView} view @param {Step} step */
  async watch(view, step) {
    const tries = step.kind.startsWith('dead_band') && ['coarse', 'fine', 'first', 'second'].includes(step.phase);
    const grey = this.looks && tries ? grab() : null;
    if (!grey) return;
    const {held} = this.hold;
    if (!held) this.told = false;
    if (this.motion.look(grey, held) && !this.told) {
      this.told = true;
      this.heard(view, await API.say('moves', []));
    }
  }
}

/** @param {All} all */
function history({changes, now}) {
  if (changes.length === 0) return paragraph(t.calibration.historyEmpty);
  const list = make('ol', '');
  list.className = 'calibration-history';
  const items = changes.map((change, index) => {
    const values = Object.entries(change.values).map(([key, value]) => `${STRINGS.name(key)} ${STRINGS.value(value)}`);
    const item = make('li', '');
    const title = titled(STRINGS.when(change.utc_s), STRINGS.change(change.what));
    item.append(make('b', index === now ? `${title} (${t.calibration.holds})` : title), make('p', clauses(values)));
    return item;
  });
  list.append(...items.reverse());
  return list;
}
