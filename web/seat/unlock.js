/** The dialog that asks for a code. It loads with the menu, after the first screen. */

import {byId, input, setText} from '../lib/dom.js';
import {tidyCode} from '../lib/wire.js';
import {DRAWER_STRINGS} from './drawer-strings.js';
import {STRINGS} from './strings.js';

/** @import {CarError, State} from '../lib/types.js' */

/** Asks for a code; the car then remembers the device. */
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
      this.tried = tidyCode(this.field.value);
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
    this.tried = '';
    this.field.value = '';
    this.panels.close('unlock');
    return now.grown_up && !before.grown_up ? DRAWER_STRINGS.grownUp : DRAWER_STRINGS.unlocked;
  }

  /** Shows an error about codes. @param {CarError} error */
  refused(error) {
    this.tried = '';
    const words = error.what === 'wrong code' ? DRAWER_STRINGS.wrongCode : '';
    setText(byId('unlock-fault'), words || STRINGS.carError(error));
    if (this.panels.isOpen('unlock')) this.field.select();
  }
}
