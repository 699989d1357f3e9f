/** The person's name: suggested on first entry, kept in this browser, sent by each hello. */

import {fill, t} from '../../lang/words.js';
import {input} from '../../lib/dom.js';
import {saved} from '../../lib/storage.js';
import {plain} from '../strings.js';
import {toast} from '../toast.js';

/** Kind of device; '' if unknown. An iPad calls itself a Macintosh with fingers.
 * @param {{userAgent: string, maxTouchPoints: number}} browser
 * @returns {'phone' | 'tablet' | 'computer' | ''} */
export function deviceOf({userAgent, maxTouchPoints}) {
  if (/iPad|Android(?!.*Mobile)/.test(userAgent)) return 'tablet';
  if (/iPhone|Mobile/.test(userAgent)) return 'phone';
  if (/Macintosh/.test(userAgent) && maxTouchPoints > 1) return 'tablet';
  return /Windows|Macintosh|X11|CrOS/.test(userAgent) ? 'computer' : '';
}

/** A friendly name, like "Blue Fox (phone)".
 * @param {ReturnType<typeof deviceOf>} device @param {() => number} [random] from 0 to 1 */
export function suggestedName(device, random = Math.random) {
  const {whole, devices, ...words} = t.friendly;
  const [adjective, animal] = [words.adjectives, words.animals].map((list) => list.split(' '))
    .map((list) => list[Math.floor(random() * list.length)]);
  const name = fill(whole, {adjective, animal});
  return device ? fill(devices[device], {name}) : name;
}

/** Suggests a name, keeps changes, and returns a function that sends the name on a new link.
 * @param {(message: import('../../lib/types.js').Upward) => boolean} send */
export function ownName(send) {
  const field = input('name');
  const tell = () => send({kind: 'name', name: field.value});
  const changed = () => {
    field.value = plain(field.value).trim() || suggestedName(deviceOf(navigator));
    saved.set('name', field.value);
    tell();
  };
  field.value = plain(saved.get('name'));
  field.addEventListener('change', changed);
  if (!field.value) {
    changed();
    toast(fill(t.friendly.first, {name: field.value}));
  }
  return tell;
}
