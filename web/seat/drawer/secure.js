/** The offer of https on a plain http page: a sharper picture, and the screen stays awake. */

import {button, byId, show} from '../../lib/dom.js';
import {session} from '../../lib/storage.js';

export class Secure {
  constructor() {
    this.element = byId('secure');
    button('secure-later').addEventListener('click', () => {
      session.set('secure', 'later');
      show(this.element, false);
    });
  }

  /** @param {number} port 0 if https is not served */
  offer(port) {
    const offered = !isSecureContext && port > 0 && session.get('secure') !== 'later';
    const link = byId('secure-go', HTMLAnchorElement);
    if (offered) link.href = `https://${location.hostname}:${port}/`;
    show(this.element, offered);
  }

  /** Hides the offer during driving. */
  hide() {
    show(this.element, false);
  }
}
