/** A grown-up's invitation to drive for a while: a QR code and a link. Loaded on
 * demand. */

import {t, fill, unit} from '../../lang/words.js';
import {make} from '../../lib/dom.js';
import {Refused, askJson} from '../../lib/http.js';
import {timeIn} from './people-strings.js';

const LENGTHS_MIN = [30, 60, 120, 480];
const HOUR_MIN = 60;

/** @param {number} minutes */
const spoken = (minutes) =>
  (minutes < HOUR_MIN ? unit(minutes, 'minute') : unit(minutes / HOUR_MIN, 'hour'));

/** @import {Invitation} from '../../lib/types.js' */

/** The car's answer. Throws an Error with its words. @param {string} minutes @returns {Promise<Invitation>} */
async function ask(minutes) {
  try {
    return await askJson(`api/invitations?minutes=${minutes}`, {method: 'POST'});
  } catch (fault) {
    throw fault instanceof Refused ? fault : new Error(t.carSilent);
  }
}

/** Asks for how long, in `place`. @param {HTMLElement} place */
export function open(place) {
  const length = document.createElement('select');
  length.id = 'invite-length';
  length.append(...LENGTHS_MIN.map((minutes) => new Option(spoken(minutes), String(minutes))));
  length.value = '60';
  const label = Object.assign(make('label', t.invite.howLong), {htmlFor: length.id});
  const button = document.createElement('button');
  button.textContent = t.invite.invite;
  const result = make('div', '');
  result.setAttribute('role', 'status');
  button.addEventListener('click', async () => {
    button.disabled = true;
    await invite(length.value, result);
    button.disabled = false;
  });
  place.replaceChildren(label, length, button, result);
  length.focus();
}

/** Shows an invitation, or the error. @param {string} minutes @param {HTMLElement} result */
async function invite(minutes, result) {
  const says = make('p', t.invite.making);
  result.replaceChildren(says);
  try {
    const {link, qr, left_s: leftS} = await ask(minutes);
    says.textContent = fill(t.invite.made, {time: timeIn(leftS)});
    const src = `data:image/svg+xml,${encodeURIComponent(qr)}`;
    result.append(Object.assign(new Image(), {id: 'invite-qr', alt: t.invite.qr, src}),
      Object.assign(make('a', link), {id: 'invite-link', href: link}));
    result.parentElement?.replaceChildren(result);  // the code needs the room of the questions
  } catch (fault) {
    says.textContent = fault instanceof Error ? fault.message : String(fault);
    says.className = 'fault';
  }
}
