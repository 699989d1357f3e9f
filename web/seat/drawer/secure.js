/** The offer of https on a plain http page: a sharper picture, and the screen stays awake. */

import {button, byId, show} from '../../lib/dom.js';
import {session} from '../../lib/storage.js';

export class Secure {
  constructor() {
    this.element = byId('secure');
    this.drove = false;
    button('secure-later').addEventListener('click', () => {
      session.set('secure', 'later');
      show(this.element, false);
    });
  }

  /** @param {number} port 0 if https is not served */
  offer(port) {
    const offered = !isSecureContext && port > 0;
    for (const id of ['secure-go', 'secure-menu']) {
      byId(id, HTMLAnchorElement).href = `https://${location.hostname}:${port}/`;
    }
    // The menu keeps the offer.
    show(byId('secure-menu'), offered);
    show(this.element, offered && !this.drove && session.get('secure') !== 'later');
  }

  /** Hides the offer: driving began. */
  hide() {
    this.drove = true;
    show(this.element, false);
  }
}
