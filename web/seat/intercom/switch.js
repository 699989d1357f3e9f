/** The intercom's switch, for grown-ups of a car that has one. The intercom loads once it is on. */

import {t} from '../../lang/words.js';
import {byId, make} from '../../lib/dom.js';

const ANSWER_MS = 500;

/** @import {State, Upward, Welcome} from '../../lib/types.js' */

export class IntercomSwitch {
  /** @param {{send: (message: Upward) => boolean, link: import('../link/link.js').Link}} parts */
  constructor({send, link}) {
    this.link = link;
    this.box = document.createElement('input');
    this.box.id = 'intercom';
    this.box.type = 'checkbox';
    this.box.addEventListener('change', () => {
      this.changedMs = performance.now();
      send({kind: 'intercom', on: this.box.checked});
    });
    this.changedMs = -Infinity;
    /** @type {import('./intercom.js').Intercom | null} */
    this.intercom = null;
    this.loading = false;
  }

  /** @param {Welcome} welcome */
  welcomed({features = []}) {
    const label = make('label', '');
    label.className = 'check';
    label.append(this.box, ' ', make('span', t.intercom.label));
    const hint = make('p', t.intercom.hint);
    hint.className = 'hint';
    byId('intercom-setting').replaceChildren(...features.includes('intercom') ? [label, hint] : []);
  }

  /** @param {State} state */
  update(state) {
    // A state from before the car's answer would flip it back.
    const {on = false} = state.parts?.intercom ?? {};
    if (performance.now() - this.changedMs > ANSWER_MS) this.box.checked = on;
    if (on && !this.loading) void this.load(state);
    this.intercom?.update(state);
  }

  /** @param {State} state */
  async load(state) {
    this.loading = true;
    this.intercom = new (await import('./intercom.js')).Intercom(this.link);
    this.intercom.update(state);
  }
}
