/** The dialog that asks for a code. It loads with the menu, after the first screen. */

import {t, fill} from '../../lang/words.js';
import {byId, input, setText} from '../../lib/dom.js';
import {DRAWER_STRINGS} from './drawer-strings.js';
import {timeIn} from './people-strings.js';
import {toast} from '../toast.js';

/** @import {CarError, Pass, State} from '../../lib/types.js' */

const INVITED = '#invited=';
const CODE_MOST = 32;
const ABOUT_CODES = ['wrong_code', 'too_many_codes', 'watch_only'];

/**
 * A code as the car has it: people write it in capitals, in groups, with dashes, and some
 * keyboards in full width.
 * @param {string} typed
 */
export const tidyCode = (typed) =>
  typed.normalize('NFKC').toLowerCase().replace(/[\s\p{Pd}]/gu, '').slice(0, CODE_MOST);

/** Asks for a code; the car then remembers the device. */
export class Unlock {
  /**
   * @param {{send: (code: string) => void, panels: import('../hud/panels.js').Panels}} parts
   */
  constructor({send, panels}) {
    this.panels = panels;
    this.field = input('code');
    this.tried = '';
    this.send = send;
    /** Did a link bring the code? */
    this.invited = false;
    /** How long a guest may drive, in s; 0 for others. */
    this.leftS = 0;
    addEventListener('hashchange', () => this.welcomed()); // a link, while it is open
    byId('unlock-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.tried = tidyCode(this.field.value);
      if (!this.tried) return;
      this.invited = false;
      setText(byId('unlock-fault'), '');
      send(this.tried);
    });
  }

  open() {
    setText(byId('unlock-fault'), '');
    this.panels.open('unlock', this.field);
  }

  /** Sends the code of an invitation once, if its link opened this page. */
  welcomed() {
    if (!location.hash.startsWith(INVITED)) return;
    this.tried = location.hash.slice(INVITED.length);
    this.invited = true;
    // A second visit to the same address sends no code: the cookie unlocks the car.
    history.replaceState(null, '', location.pathname + location.search);
    this.send(this.tried);
  }

  /** The car remembers this device. @param {Pass} pass */
  passed(pass) {
    this.leftS = pass.left_s ?? 0;
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
    if (now.grown_up && !before.grown_up) return t.grownUp;
    return this.leftS ? fill(t.guest, {time: timeIn(this.leftS)}) : t.unlocked;
  }

  /** Shows a refusal of the car: in the dialog if it is about codes. @param {CarError} error */
  refused(error) {
    if (!ABOUT_CODES.includes(error.code)) {
      toast(DRAWER_STRINGS.carError(error), 'warn');
      return;
    }
    if (error.code === 'watch_only') {
      // After "take" the dialog is open already.
      if (error.value !== 'take') toast(DRAWER_STRINGS.carError(error), 'warn');
      return;
    }
    this.tried = '';
    const wrong = this.invited ? t.invitationOver : t.wrongCode;
    const text = error.code === 'wrong_code' ? wrong : '';
    if (this.invited && !this.panels.isOpen('unlock')) this.open();
    setText(byId('unlock-fault'), text || DRAWER_STRINGS.carError(error));
    if (this.panels.isOpen('unlock')) this.field.select();
  }
}
