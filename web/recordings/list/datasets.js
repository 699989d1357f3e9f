/**
 * Datasets for training, made of the ticked drives by a process of the car or station: form, list,
 * progress, downloads. See pi/fpvcar/datasets/api.py.
 */

import {counted, listed} from '../../lang/forms.js';
import {fill, percent, said, t} from '../../lang/words.js';
import {button, byId, input, make, setText, show} from '../../lib/dom.js';
import {Refused} from '../../lib/http.js';
import {Rate} from '../player/exports.js';
import {STRINGS} from '../strings.js';

/** @import {Dataset, DatasetApi, DatasetRequest, Datasets, Drive} from '../types.js' */

/** Time between two requests while a dataset is made, and otherwise. */
const ASK_EVERY_MS = 1000;
const IDLE_MS = 10_000;
const NAMES = {lerobot: 'LeRobot', donkey: 'Donkeycar'};
/** Donkeycar's usual pictures. */
const DONKEY_SIZE = '160x120';

/**
 * The request of a form. Pure.
 * @param {FormData} form @param {readonly Drive[]} drives @returns {DatasetRequest}
 */
export function requestOf(form, drives) {
  const [width, height] = String(form.get('size') || '0x0').split('x').map(Number);
  return {
    name: String(form.get('name')), kind: form.get('kind') === 'donkey' ? 'donkey' : 'lerobot',
    drives: drives.map(({parts, startMs, seconds}) => ({
      files: parts.map(({name}) => name), from_ms: Math.max(0, startMs), to_ms: startMs + seconds * 1000,
    })),
    fps: Number(form.get('fps')), width, height, copy: !form.get('encode'),
    marks: form.get('episodes') === 'marks',
  };
}

/** A name that is free: of the kind and day. Pure. @param {string} kind @param {number} nowMs @param {readonly Dataset[]} datasets */
export function freeName(kind, nowMs, datasets) {
  const name = `${kind}-${new Date(nowMs).toISOString().slice(0, 10)}`;
  const taken = new Set(datasets.map((dataset) => dataset.name));
  let number = 1;
  while (taken.has(number > 1 ? `${name}-${number}` : name)) number += 1;
  return number > 1 ? `${name}-${number}` : name;
}

export class DatasetMaker {
  /** @param {{api: DatasetApi, drives: () => readonly Drive[], station: boolean}} parts `drives` are those ticked */
  constructor({api, drives, station}) {
    this.api = api;
    this.drives = drives;
    this.part = byId('datasets', HTMLDetailsElement);
    this.form = byId('datasets-form', HTMLFormElement);
    this.kind = byId('datasets-kind', HTMLSelectElement);
    /** @type {Datasets | null} */
    this.now = null;
    this.rate = new Rate();
    this.suggested = '';
    /** Dataset whose removal has to be confirmed. */
    this.removing = '';
    /** Waits for the code. @type {(() => Promise<Datasets>) | null} */
    this.pending = null;
    this.timer = 0;
    /** Did the last request of the list fail? */
    this.lost = false;
    setText(byId('datasets-code-label'), station ? t.recordings.password : t.recordings.grownUpCode);
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      const request = requestOf(new FormData(this.form), this.drives());
      void this.act(() => this.api.beginDataset(request));
    });
    byId('datasets-unlock').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.unlock();
    });
    this.kind.addEventListener('change', () => this.draw());
    this.part.addEventListener('toggle', () => this.toggled());
    document.addEventListener('visibilitychange', () => this.toggled());
    this.toggled();
  }

  toggled() {
    document.body.toggleAttribute('data-choosing', this.part.open);
    this.chosen();
    clearTimeout(this.timer);
    if (this.part.open && document.visibilityState === 'visible') void this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      this.take(await this.api.datasets());
      if (this.lost) setText(byId('datasets-fault'), '');
      this.lost = false;
    } catch (fault) {
      this.lost = true;
      this.refuse(fault);
    }
    this.later();
  }

  /** Runs an act whose answer is the list, or asks for the code first. @param {() => Promise<Datasets>} what */
  async act(what) {
    setText(byId('datasets-fault'), '');
    show(byId('datasets-unlock'), false);
    try {
      this.take(await what());
    } catch (fault) {
      const locked = fault instanceof Refused && fault.locked;
      this.pending = locked ? what : null;
      show(byId('datasets-unlock'), locked);
      if (locked) input('datasets-code').focus();
      else this.refuse(fault);
    }
  }

  async unlock() {
    const {pending} = this;
    try {
      await this.api.unlock(input('datasets-code').value.trim());
    } catch (fault) {
      this.refuse(fault);
      return;
    }
    input('datasets-code').value = '';
    if (pending) await this.act(pending);
  }

  /** @param {unknown} fault */
  refuse(fault) {
    setText(byId('datasets-fault'), STRINGS.refused(fault instanceof Error ? fault.message : String(fault)));
  }

  /** @param {Datasets} now */
  take(now) {
    this.now = now;
    this.draw();
    this.later();
  }

  get busy() {
    return Boolean(this.now?.datasets.some(({state}) => state === 'working' || state === 'waiting'));
  }

  later() {
    clearTimeout(this.timer);
    if (!this.part.open || document.visibilityState !== 'visible') return;
    this.timer = Number(setTimeout(() => void this.refresh(), this.busy ? ASK_EVERY_MS : IDLE_MS));
  }

  /** Shows how many drives are ticked. */
  chosen() {
    const drives = this.drives();
    const bytes = drives.reduce((sum, drive) => sum + drive.bytes, 0);
    setText(byId('datasets-chosen'), drives.length
      ? counted(t.recordings.datasetsChosen, drives.length, {size: STRINGS.size(bytes)}) : t.recordings.datasetsNone);
    this.allow(drives.length);
  }

  /** @param {number} drives */
  allow(drives) {
    button('datasets-begin').disabled = !drives || this.busy || Boolean(this.now?.install[this.kind.value]);
  }

  draw() {
    const {now} = this;
    if (!now) return;
    const kind = this.kind.value;
    const install = said(now.install[kind] ?? null);
    show(byId('datasets-install'), Boolean(install));
    setText(byId('datasets-install'), install);
    byId('datasets-size', HTMLSelectElement).options[0].label =
      kind === 'donkey' ? DONKEY_SIZE : t.recordings.datasetsAsRecorded;
    show(byId('datasets-encode-part'), kind === 'lerobot');
    const name = input('datasets-name');
    if (name.value === this.suggested) {
      this.suggested = freeName(kind, Date.now(), now.datasets);
      name.value = this.suggested;
    }
    setText(byId('datasets-free'), fill(t.recordings.datasetsFree, {size: STRINGS.size(now.free), path: now.path}));
    this.allow(this.drives().length);
    const list = byId('datasets-list');
    const shown = JSON.stringify([now.datasets, this.removing]);
    if (list.dataset.shown === shown) return;
    list.dataset.shown = shown;
    const {activeElement} = document;
    const active = list.contains(activeElement) ? activeElement?.id : null;
    list.replaceChildren(...now.datasets.map((dataset) => this.row(dataset)));
    if (active) document.getElementById(active)?.focus();
  }

  /** @param {Dataset} dataset */
  row(dataset) {
    const row = make('li', '');
    const {name, state, summary, fault, missing} = dataset;
    row.append(make('strong', name));
    row.append(make('span', listed([NAMES[dataset.kind === 'donkey' ? 'donkey' : 'lerobot'],
      dataset.bytes ? STRINGS.size(dataset.bytes) : '', state === 'ready' ? '' : t.recordings.datasetsState[state]])));
    if (summary) row.append(make('span', contentsOf(summary)));
    if (state === 'working' || state === 'waiting') row.append(...this.progress(dataset));
    if (fault) {
      const why = make('span', said(fault));
      why.className = 'fault';
      row.append(why);
    }
    for (const text of missing) row.append(make('span', said(text)));
    row.append(this.buttons(dataset));
    return row;
  }

  /** @param {Dataset} dataset */
  progress({name, done, total, state}) {
    const bar = document.createElement('progress');
    bar.max = Math.max(total, 1);
    bar.value = Math.min(done, total);
    bar.setAttribute('aria-label', name);
    this.rate.add(performance.now(), done);
    const leftS = state === 'working' ? this.rate.leftS(total) : null;
    const left = leftS === null ? '' : fill(t.recordings.toGo, {time: STRINGS.spoken(Math.ceil(leftS))});
    return [bar, make('span', listed([percent(Math.min(0.99, Math.floor(100 * done / Math.max(total, 1)) / 100)), left]))];
  }

  /** @param {Dataset} dataset */
  buttons({name, state}) {
    const choice = make('div', '');
    choice.className = 'choice';
    const {resume, cancel, removeDataset, download} = t.recordings.datasetsActs;
    const push = (/** @type {string} */ verb, /** @type {string} */ text, /** @type {() => void} */ act) => {
      const element = make('button', text);
      element.id = `datasets-${verb} ${name}`;
      element.addEventListener('click', act);
      choice.append(element);
      return element;
    };
    if (state === 'working' || state === 'waiting') {
      push('cancel', cancel, () => void this.act(() => this.api.changeDataset(name, 'cancel')));
      return choice;
    }
    if (state === 'ready') {
      const link = document.createElement('a');
      link.className = 'button';
      link.href = this.api.datasetFile(name);
      link.download = `${name}.tar`;
      link.textContent = download;
      choice.append(link);
    } else push('resume', resume, () => void this.act(() => this.api.changeDataset(name, 'resume')));
    if (this.removing === name) {
      push('remove', t.recordings.removeSure, () => {
        this.removing = '';
        void this.act(() => this.api.changeDataset(name, 'remove'));
      }).className = 'danger';
    } else {
      push('remove', removeDataset, () => {
        this.removing = name;
        this.draw();
      });
    }
    return choice;
  }
}

/** @param {NonNullable<Dataset['summary']>} summary */
function contentsOf({episodes, frames, fps, doubled, dropped}) {
  const {datasetsEpisodeCount, datasetsRows} = t.recordings;
  return listed([counted(datasetsEpisodeCount, episodes),
    counted(datasetsRows, frames, {fps: String(fps), doubled: String(doubled), dropped: String(dropped)})]);
}
