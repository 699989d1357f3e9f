/** The intercom of a car that has one; a grown-up's switch. The intercom loads once it is on. */

import {t} from '../../lang/words.js';
import {byId, setText, show} from '../../lib/dom.js';

/** @import {State, Welcome} from '../../lib/types.js' */

export class IntercomSwitch {
  /** @param {{link: import('../link/link.js').Link}} parts */
  constructor({link}) {
    this.link = link;
    /** @type {import('./intercom.js').Intercom | null} */
    this.intercom = null;
    this.loading = false;
    setText(byId('intercom-label'), t.intercom.label);
    setText(byId('intercom-hint'), t.intercom.hint);
  }

  /** @param {Welcome} welcome */
  welcomed({features = []}) {
    show(byId('intercom-setting'), features.includes('intercom'));
  }

  /** @param {State} state */
  update(state) {
    if (state.parts?.intercom?.on && !this.loading) void this.load(state);
    this.intercom?.update(state);
  }

  /** @param {State} state */
  async load(state) {
    this.loading = true;
    this.intercom = new (await import('./intercom.js')).Intercom(this.link);
    this.intercom.update(state);
  }
}
