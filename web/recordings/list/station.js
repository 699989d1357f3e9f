/** A base station's own part of the page: storage used, pending bytes, current transfers. */

import {t} from '../../lang/words.js';
import {byId, make, setText, show} from '../../lib/dom.js';
import {API} from '../api.js';
import {recallFigures, recallText} from '../player/recall.js';
import {STATION_STRINGS as SAYS} from './station-strings.js';

/** @import {RecallState, Storage} from '../types.js' */

/**
 * One line of the panel: a car whose recordings come, or a remote that they go to.
 * @typedef {object} Row
 * @property {string} name
 * @property {string} says
 * @property {number} there bytes
 * @property {number} waits bytes
 * @property {string} moving text of the bar
 * @property {string} full
 * @property {number} used of the card, bytes
 * @property {number} total of the card, bytes; 0: unknown
 * @property {string} card text of its bar
 */

const EVERY_MS = 2000;
/** Recalls of interest for longer than their drive is open. */
const SHOWN = ['waiting', 'copying', 'verifying', 'failed'];

export class Station {
  /** @param {(recalls: RecallState[]) => void} recalled gets the recalls of each answer */
  constructor(recalled) {
    this.recalled = recalled;
    this.timer = 0;
    show(byId('storage'), true);
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') void this.refresh();
      else clearTimeout(this.timer);
    });
    void this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      const storage = await API.storage();
      this.draw(storage);
      this.recalled(storage.recalls);
      setText(byId('storage-fault'), '');
    } catch (fault) {
      setText(byId('storage-fault'), SAYS.failed(fault instanceof Error ? fault.message : String(fault)));
    }
    this.timer = Number(setTimeout(() => void this.refresh(), EVERY_MS));
  }

  /** @param {Storage} storage */
  draw({store, cars, offices: remotes, unread, why_anew: whyAnew, chores, snapshots, snapshot_s: newestS, recalls}) {
    const waits = [...cars, ...remotes].reduce((sum, place) => sum + place.waiting_bytes, 0);
    setText(byId('storage-brief'), SAYS.brief(store, waits));
    setText(byId('storage-path'), SAYS.store(store));
    setText(byId('storage-snapshots'), SAYS.snapshots(snapshots, newestS));
    setText(byId('storage-catalogue'), SAYS.catalogue(unread, whyAnew, chores));
    bar('storage-disk', store.total - store.free, store.total);
    rows('storage-cars', cars.map((car) => ({
      name: car.folder, says: SAYS.car(car), there: car.bytes, waits: car.waiting_bytes,
      moving: SAYS.pulling(car.folder), full: SAYS.card(car), card: SAYS.cardOf(car.folder),
      used: car.card_total - car.card_free, total: car.card_total,
    })));
    rows('storage-recalls', recalls.filter(({state}) => SHOWN.includes(state)).map((recall) => ({
      name: recall.session, says: recallText(recall), full: recallFigures(recall),
      there: recall.done, waits: recall.state === 'failed' ? 0 : recall.total - recall.done,
      moving: t.recordings.recallBar, card: '', used: 0, total: 0,
    })));
    rows('storage-remotes', remotes.map((remote) => ({
      name: remote.place, says: SAYS.remote(remote), there: remote.bytes,
      waits: remote.waiting_bytes, moving: SAYS.sending(remote.place),
      full: SAYS.fault(remote), card: '', used: 0, total: 0,
    })));
    show(byId('storage-nobody'), !cars.length);
  }
}

/** @param {string} id @param {Row[]} entries */
function rows(id, entries) {
  const list = byId(id);
  while (list.childElementCount > entries.length) list.lastElementChild?.remove();
  entries.forEach((entry, index) => {
    const row = list.children[index] ?? list.appendChild(rowOf(`${id}-${index}`));
    const [name, says, full] = row.querySelectorAll('strong, span');
    const [moving, card] = row.querySelectorAll('progress');
    setText(name, entry.name);
    setText(says, entry.says);
    setText(full, entry.full);
    fill(moving, entry.there, entry.waits && entry.there + entry.waits, entry.moving);
    fill(card, entry.used, entry.total, entry.card);
  });
}

/** @param {HTMLProgressElement} element @param {number} value @param {number} max
 * @param {string} label */
function fill(element, value, max, label) {
  show(element, max > 0);
  element.max = max || 1;
  element.value = value;
  element.setAttribute('aria-label', label);
}

/** @param {string} id */
function rowOf(id) {
  const row = make('li', '');
  row.id = id;
  const bars = [1, 2].map(() => document.createElement('progress'));
  row.append(make('strong', ''), make('span', ''), bars[0], make('span', ''), bars[1]);
  return row;
}

/** @param {string} id @param {number} value @param {number} max */
function bar(id, value, max) {
  const element = byId(id, HTMLProgressElement);
  element.max = max || 1;
  element.value = value;
}
