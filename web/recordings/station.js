/** A base station's own part of the page: how full it is, what waits, what comes now. */

import {byId, make, setText, show} from '../lib/dom.js';
import {API} from './api.js';
import {Rate} from './exports.js';
import {STATION_STRINGS as SAYS} from './station-strings.js';

/** @import {CarState, Storage} from './types.js' */

const EVERY_MS = 2000;

export class Station {
  constructor() {
    /** The rate at which each car's recordings come. @type {Map<string, Rate>} */
    this.rates = new Map();
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
      this.draw(await API.storage(), performance.now());
      setText(byId('storage-fault'), '');
    } catch (fault) {
      setText(byId('storage-fault'), SAYS.failed(fault instanceof Error ? fault.message : String(fault)));
    }
    this.timer = Number(setTimeout(() => void this.refresh(), EVERY_MS));
  }

  /** @param {Storage} found @param {number} nowMs */
  draw({store, cars, unread, why_anew: whyAnew}, nowMs) {
    const waits = cars.reduce((sum, one) => sum + one.waiting_bytes, 0);
    setText(byId('storage-brief'), SAYS.brief(store, waits));
    setText(byId('storage-path'), SAYS.store(store));
    setText(byId('storage-catalogue'), SAYS.catalogue(unread, whyAnew));
    bar('storage-disk', store.total - store.free, store.total);
    const list = byId('storage-cars');
    while (list.childElementCount > cars.length) list.lastElementChild?.remove();
    cars.forEach((car, index) => {
      const row = list.children[index] ?? list.appendChild(rowOf(index));
      this.car(row, car, nowMs);
    });
    show(byId('storage-nobody'), !cars.length);
  }

  /** @param {Element} row @param {CarState} car @param {number} nowMs */
  car(row, car, nowMs) {
    const rate = this.rates.get(car.url) ?? new Rate();
    this.rates.set(car.url, rate);
    rate.add(nowMs, car.bytes);
    const [name, says, full] = row.querySelectorAll('strong, span');
    const [pull, card] = row.querySelectorAll('progress');
    setText(name, car.folder);
    setText(says, SAYS.car(car, rate.bytesS, rate.leftS(car.bytes + car.waiting_bytes)));
    setText(full, SAYS.card(car));
    show(pull, car.waiting_bytes > 0);
    pull.max = car.bytes + car.waiting_bytes || 1;
    pull.value = car.bytes;
    pull.setAttribute('aria-label', SAYS.pulling(car.folder));
    show(card, car.card_total > 0);
    card.max = car.card_total || 1;
    card.value = car.card_total - car.card_free;
    card.setAttribute('aria-label', SAYS.cardOf(car.folder));
  }
}

/** @param {number} index */
function rowOf(index) {
  const row = make('li', '');
  row.id = `storage-car-${index}`;
  const bars = [1, 2].map(() => document.createElement('progress'));
  row.append(make('strong', ''), make('span', ''), bars[0], make('span', ''), bars[1]);
  return row;
}

/** @param {string} id @param {number} value @param {number} max */
function bar(id, value, max) {
  const found = byId(id, HTMLProgressElement);
  found.max = max || 1;
  found.value = value;
}
