/** Requests for the wheel: the driver's question, and the asker's news. Loads with the menu. */

import {fill, joined, number, t} from '../../lang/words.js';
import {button, byId, setText} from '../../lib/dom.js';
import {offer} from './message_card.js';
import {personName} from '../strings.js';

/** @import {State, Upward} from '../../lib/types.js' */

/** While the driver drives the wait is longer, and there is no countdown. */
const COUNTDOWN_S = 9.5;

/** The texts of a request: its news, and a countdown or ''. Pure.
 * @param {State} state @returns {[string, string]} */
export function askingTexts({asking, driver, seat_free: free, wait_s: waitS}) {
  // A free wheel has its own card.
  if (!asking || (free && asking.phase !== 'asks')) return ['', ''];
  const name = personName(asking.name || driver || '');
  const freeIn = waitS > COUNTDOWN_S ? '' : fill(t.asking.freeIn, {seconds: number(Math.ceil(waitS))});
  const again = fill(t.asking.again, {seconds: number(Math.ceil(asking.left_s))});
  const news = fill(t.asking[asking.phase], {name});
  if (asking.phase === 'asks') return [news, ''];
  return [news, asking.phase === 'waits' ? freeIn : joined(freeIn, again)];
}

export class Asking {
  /** `given` is called before the wheel is given away.
   * @param {{send: (message: Upward) => boolean, given: () => void, keysBusy: () => boolean}} parts */
  constructor({send, given, keysBusy}) {
    this.says = byId('asking-says');
    this.countdown = byId('asking-countdown');
    this.buttons = [button('asking-give'), button('asking-later')];
    this.asker = '';
    for (const element of this.buttons) {
      const give = element.id === 'asking-give';
      element.addEventListener('click', (event) => {
        // detail 0: pushed by a key. While a driving key is down that is a slip.
        if (event.detail === 0 && keysBusy()) return;
        if (give) given();
        send({kind: 'answer', id: this.asker, give});
      });
    }
  }

  /** @param {State} state */
  update(state) {
    const [says, countdown] = askingTexts(state);
    setText(this.says, says);
    setText(this.countdown, countdown);
    this.asker = state.asking?.id ?? '';
    for (const element of this.buttons) offer(element, state.asking?.phase === 'asks');
  }
}
