/** Full screen by one tap. Browsers keep Esc for leaving it, so leaving stops the car. */

import {button, show} from '../../lib/dom.js';

export class FullScreen {
  /**
   * @param {{left: (byUs: boolean) => void}} parts `byUs`: left by our own button, not by Esc
   */
  constructor({left}) {
    this.byUs = false;
    const possible = document.fullscreenEnabled === true;
    show(button('full'), possible);
    button('full').addEventListener('click', () => this.toggle());
    document.addEventListener('fullscreenchange', () => {
      if (document.fullscreenElement) return;
      left(this.byUs);
      this.byUs = false;
    });
  }

  async toggle() {
    if (document.fullscreenElement) {
      this.byUs = true;
      await document.exitFullscreen();
      return;
    }
    try {
      await document.documentElement.requestFullscreen({navigationUI: 'hide'});
    } catch (fault) {
      // TypeError: the browser refuses; the page works without.
      if (!(fault instanceof TypeError)) throw fault;
    }
  }
}
