/** Spoken warnings: stops, a lost or late link, wheels that do not respond, a low battery. Loads
 * when it is switched on. */

import {LOCALE} from '../../lang/words.js';
import {byId} from '../../lib/dom.js';

const SPOKEN = ['stopped', 'lost', 'late', 'wheels', 'battery'];
const observer = new MutationObserver(speak);

/** Speaks the message that screen readers get; the newest one ends the one before. */
function speak() {
  const text = byId('say').textContent;
  speechSynthesis.cancel();
  if (!text || !SPOKEN.includes(document.body.dataset.situation ?? '')) return;
  const words = new SpeechSynthesisUtterance(text);
  words.lang = LOCALE;
  speechSynthesis.speak(words);
}

/** @param {boolean} on */
export function speakWarnings(on) {
  observer.disconnect();
  speechSynthesis.cancel();
  if (on) observer.observe(byId('say'), {childList: true});
}
