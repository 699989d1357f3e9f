/** A grown-up invites somebody to drive for a while: a QR code and a link. It loads when
 * somebody asks for it. */

import {make} from '../lib/dom.js';
import {INVITE_STRINGS as STRINGS, timeIn} from './invite-strings.js';

/** @typedef {{link: string, qr: string, left_s: number}} Invitation */

/** The car's answer. Throws an Error with its words. @param {string} minutes @returns {Promise<Invitation>} */
async function ask(minutes) {
  let answer;
  try {
    answer = await fetch(`/api/invitations?minutes=${minutes}`, {method: 'POST'});
  } catch {
    throw new Error(STRINGS.silent);
  }
  if (!answer.ok) throw new Error((await answer.text()).trim() || STRINGS.silent);
  return answer.json();
}

/** Asks for how long, in `place`. @param {HTMLElement} place */
export function open(place) {
  const length = document.createElement('select');
  length.id = 'invite-length';
  length.append(...STRINGS.lengths.map(([minutes, words]) => new Option(words, String(minutes))));
  length.value = '60';
  const label = document.createElement('label');
  label.htmlFor = length.id;
  label.textContent = STRINGS.howLong;
  const button = document.createElement('button');
  button.textContent = STRINGS.invite;
  const result = make('div', '');
  result.setAttribute('role', 'status');
  button.addEventListener('click', async () => {
    button.disabled = true;
    await invite(length.value, result);
    button.disabled = false;
  });
  place.replaceChildren(make('h4', STRINGS.title), label, length, button, result);
  length.focus();
}

/** Shows an invitation, or why there is none. @param {string} minutes @param {HTMLElement} result */
async function invite(minutes, result) {
  const says = make('p', STRINGS.making);
  result.replaceChildren(says);
  try {
    const {link, qr, left_s: leftS} = await ask(minutes);
    says.textContent = STRINGS.made(timeIn(leftS));
    const picture = new Image();
    picture.id = 'invite-qr';
    picture.alt = STRINGS.qr;
    picture.src = `data:image/svg+xml,${encodeURIComponent(qr)}`;
    const words = document.createElement('a');
    words.id = 'invite-link';
    words.textContent = link;
    words.href = link;
    result.append(picture, words);
  } catch (fault) {
    says.textContent = fault instanceof Error ? fault.message : String(fault);
    says.className = 'fault';
  }
}
