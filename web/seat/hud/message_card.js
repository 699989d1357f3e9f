/** The card that shows a problem and its remedy, with buttons. */

import {t} from '../../lang/words.js';
import {button, byId, setAttr, setText, show} from '../../lib/dom.js';
import {sentence} from '../strings.js';

/** @import {Situation} from '../types.js' */

/** A push so soon is ignored: the button has just appeared under a thumb. */
const FRESH_MS = 250;
/** How long a calm card stays. */
const CALM_MS = 6000;
const FLEETING = ['watching', 'locked', 'taken'];

/**
 * Does this card go away by itself? On a wide screen the one about the battery covers
 * distances that the driver needs.
 * @param {Situation} it
 */
const fleeting = (it) => FLEETING.includes(it.kind) ||
  (it.kind === 'battery' && it.wishing && matchMedia('(orientation: landscape)').matches);

export class MessageCard {
  /**
   * @param {{resume: () => void, take: () => void, code: () => void, here: () => void,
   *   watch: () => void, keysBusy: () => boolean}} parts
   */
  constructor(parts) {
    this.element = byId('card');
    this.buttons = {
      resume: button('resume'), take: button('card-take'), code: button('card-code'),
      here: button('card-here'), watch: button('card-watch'),
    };
    setText(this.buttons.resume, t.resume);
    setText(this.buttons.take, t.take);
    setText(this.buttons.code, t.enterCode);
    setText(this.buttons.here, t.driveHere);
    setText(this.buttons.watch, t.onlyWatch);
    setText(byId('card-trust'), t.getTrust);
    for (const name of /** @type {const} */ (['resume', 'take', 'code', 'here', 'watch'])) {
      this.buttons[name].addEventListener('click', (event) => {
        // detail 0: pushed by a key. While a driving key is down that is a slip.
        if (event.detail === 0 && parts.keysBusy()) return;
        parts[name]();
      });
    }
    this.shown = '';
    this.sinceMs = 0;
  }

  /** @param {Situation} situation @param {boolean} mayDrive @param {number} nowMs */
  update(situation, mayDrive, nowMs) {
    setAttr(document.body, 'data-situation', situation.kind);
    const message = sentence(situation);
    const key = message ? message.title + message.text : '';
    if (key !== this.shown) {
      this.shown = key;
      this.sinceMs = nowMs;
      // Screen readers read it once, and interrupt only for an alarm.
      setAttr(byId('say'), 'role', message?.tone === 'calm' ? 'status' : 'alert');
      setText(byId('say'), message ? `${message.title}. ${message.text}` : '');
    }
    const gone = fleeting(situation) && nowMs - this.sinceMs > CALM_MS;
    show(this.element, message !== null && !gone);
    if (!message) return;
    setAttr(this.element, 'data-tone', message.tone);
    setText(byId('card-title'), message.title);
    setText(byId('card-text'), message.text);
    const {kind} = situation;
    const {resume, take, code, here, watch} = this.buttons;
    offer(resume, kind === 'stopped' && situation.mayResume);
    const leads = kind === 'stopped' ? situation.leads : null;
    offer(take, leads === 'take' || (mayDrive && 'free' in situation && situation.free));
    offer(code, kind === 'locked' || leads === 'code');
    offer(here, kind === 'parked');
    offer(watch, kind === 'late');
    show(byId('card-trust'), 'fault' in situation && situation.fault === 'secure');
  }
}

/** @param {HTMLButtonElement} element @param {boolean} on */
export function offer(element, on) {
  if (element.hidden === !on) return;
  show(element, on);
  if (on) {
    element.disabled = true;
    setTimeout(() => (element.disabled = false), FRESH_MS);
  }
}
