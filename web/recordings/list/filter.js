/** The list's filters: text, driver, day. */

import {listed} from '../../lang/forms.js';
import {t} from '../../lang/words.js';
import {button, byId, input, show} from '../../lib/dom.js';

/** @import {DriveQuery} from '../types.js' */

const TYPED_MS = 300;
/** No driver's name: it has a control character. */
const PARKED = '\u0000';

export class Filter {
  /** @param {() => void} changed is called when the filter changes */
  constructor(changed) {
    this.text = input('search');
    this.driver = byId('driver', HTMLSelectElement);
    this.day = input('day');
    this.text.placeholder = t.recordings.search;
    let timer = 0;
    this.text.addEventListener('input', () => {
      clearTimeout(timer);
      timer = Number(setTimeout(changed, TYPED_MS));
    });
    this.driver.addEventListener('change', changed);
    this.day.addEventListener('change', changed);
    byId('filter').addEventListener('submit', (event) => {
      event.preventDefault();
      changed();
    });
    button('clear').addEventListener('click', () => {
      this.text.value = this.driver.value = this.day.value = '';
      changed();
    });
  }

  /** @returns {DriveQuery} */
  get query() {
    const parked = this.driver.value === PARKED;
    return {
      driver: parked ? '' : this.driver.value, parked, day: this.day.value,
      text: this.text.value,
    };
  }

  /** Is anything filtered? */
  get active() {
    return Boolean(this.text.value.trim() || this.driver.value || this.day.value);
  }

  /** Offers these drivers. @param {readonly string[]} names */
  update(names) {
    show(button('clear'), this.active);
    offerDrivers(this.driver, names, new Option(t.recordings.nobody, PARKED));
  }
}

const NAMELESS = 'somebody';
/** A driver's name; the car records "somebody" for a page without one. @param {string} name */
export const driverName = (name) => (name === NAMELESS ? t.recordings.somebody : name);

/** Drivers in a row; those without a name only if there is no other. Pure. @param {readonly string[]} names */
export function driversText(names) {
  const named = names.filter((name) => name !== NAMELESS);
  return listed((named.length ? named : names).map(driverName), '、');
}

/**
 * Offers these drivers and all of them; an open menu stays if they are the same as before.
 * @param {HTMLSelectElement} select @param {readonly string[]} names @param {...HTMLOptionElement} more
 */
export function offerDrivers(select, names, ...more) {
  const offered = names.join('\n');
  if (offered === select.dataset.names) return;
  const {value} = select;
  select.dataset.names = offered;
  select.replaceChildren(
    new Option(t.recordings.everybody, ''), ...names.map((name) => new Option(driverName(name), name)), ...more);
  select.value = value;
  if (select.selectedIndex < 0) select.value = '';
}
