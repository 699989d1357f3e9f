/** Notices: the first visit, keys, and the code. */

import {button, byId, input, make, setText, show} from '../lib/dom.js';
import {saved, session} from '../lib/storage.js';
import {STRINGS} from './strings.js';

/** @import {CarError, State} from '../lib/types.js' */

/** Three pictures at the first visit; they go with the first drive key or thumb. */
export class FirstVisit {
  constructor() {
    this.element = byId('intro');
    button('intro-ok').addEventListener('click', () => this.done());
    show(this.element, saved.get('seen') !== 'yes');
  }

  again() {
    show(this.element, true);
  }

  done() {
    if (this.element.hidden) return;
    show(this.element, false);
    saved.set('seen', 'yes');
  }
}

/** Fills the list of keys. */
export function fillKeys() {
  byId('key-list').replaceChildren(...STRINGS.keys.flatMap(([key, does]) =>
    [make('dt', key), make('dd', does)]));
}

/** Asks for a code, and stores it for the tab: each new socket sends it. */
export class Unlock {
  /**
   * @param {{send: (code: string) => void, panels: import('./panels.js').Panels}} parts
   */
  constructor({send, panels}) {
    this.panels = panels;
    this.field = input('code');
    this.tried = '';
    byId('unlock-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.tried = this.field.value.trim();
      if (!this.tried) return;
      setText(byId('unlock-fault'), '');
      send(this.tried);
    });
  }

  open() {
    setText(byId('unlock-fault'), '');
    this.panels.open('unlock', this.field);
  }

  /**
   * Words about new rights between two states, if the code gave some.
   * @param {State | null} before
   * @param {State} now
   */
  granted(before, now) {
    const more = before && ((now.may_drive && !before.may_drive) ||
      (now.grown_up && !before.grown_up));
    if (!more || !this.tried) return '';
    session.set('code', this.tried);
    this.tried = '';
    this.field.value = '';
    this.panels.close('unlock');
    return now.grown_up && !before.grown_up ? STRINGS.grownUp : STRINGS.unlocked;
  }

  /** Shows an error about codes; false for any other error. @param {CarError} error */
  refused(error) {
    if (error.what !== 'wrong code' && error.what !== 'too many wrong codes') return false;
    if (!this.tried) session.set('code', '');
    this.tried = '';
    const words = error.what === 'wrong code' ? STRINGS.wrongCode : '';
    setText(byId('unlock-fault'), words || STRINGS.carError(error));
    if (this.panels.isOpen('unlock')) this.field.select();
    return true;
  }
}
