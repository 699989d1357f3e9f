/** Help: three pictures at the first visit, and the keys. Loads after the first screen. */

import {button, byId, make, show} from '../../lib/dom.js';
import {saved} from '../../lib/storage.js';
import {keysOf} from './drawer-strings.js';

/** @import {Welcome} from '../../lib/types.js' */

/** Three pictures at the first visit; they go with the first drive key or thumb. */
export class Help {
  constructor() {
    this.element = byId('intro');
    button('intro-ok').addEventListener('click', () => this.done());
    show(this.element, saved.get('seen') !== 'yes');
  }

  again() {
    show(this.element, true);
  }

  done() {
    show(this.element, false);
    saved.set('seen', 'yes');
  }
}

/** Lists the keys for this car. @param {Welcome} welcome */
export function fillKeys(welcome) {
  byId('key-list').replaceChildren(...keysOf(welcome).flatMap(([key, does]) =>
    [make('dt', key), make('dd', does)]));
}
