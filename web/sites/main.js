/** The switches of the Wi-Fi's groups: base-station/fpvsites/page.py. In English only. */

import {button, byId, input, make, setText, show} from '../lib/dom.js';
import {API, Locked, Refused} from '../network/api.js';

/**
 * @typedef {{name: string, mode: string, until: string, sites: string[]}} Group
 * @typedef {{groups: Group[], change: string, fault: string, in_force: boolean, off: boolean,
 *   now: string}} Status
 */

const EVERY_MS = 3000;
const HOUR_MIN = 60;
/** @type {Record<string, string>} */
const MODES = {everything: 'Every site', sites: 'Allowed sites', nothing: 'No site'};
let shown = '';

/** @param {string} url @param {RequestInit} [options] @returns {Promise<Status>} */
async function ask(url, options) {
  const answer = await fetch(url, options);
  if (answer.ok) return answer.json();
  const message = (await answer.text()).trim();
  throw answer.status === 401 ? new Locked(message) : new Refused(message);
}

/** @param {Status} status */
function update(status) {
  const {groups, change, fault, in_force: inForce, off, now} = status;
  show(byId('unlock'), false);
  show(byId('switches'), true);
  if (!input('until').value) input('until').value = later(now);
  const state = off ? 'Off: all clients reach all sites' : inForce ? 'In force' : 'Not yet in force';
  setText(byId('says'), state);
  setText(byId('fault'), fault);
  show(byId('fault'), fault !== '');
  show(button('undo'), change !== '');
  setText(button('undo'), `Undo: ${change}`);
  const key = JSON.stringify(groups);
  if (key === shown) return;
  shown = key;
  const focused = document.activeElement?.id;
  byId('groups').replaceChildren(...groups.map(section));
  if (focused) document.getElementById(focused)?.focus();
}

/** An hour after "HH:MM", at most 23:59. @param {string} now */
function later(now) {
  const [hours, minutes] = now.split(':').map(Number);
  const total = Math.min(hours * HOUR_MIN + minutes + HOUR_MIN, 24 * HOUR_MIN - 1);
  const two = (/** @type {number} */ figure) => String(Math.floor(figure)).padStart(2, '0');
  return `${two(total / HOUR_MIN)}:${two(total % HOUR_MIN)}`;
}

/** @param {Group} group */
function section({name, mode, until, sites}) {
  const part = make('section', '');
  part.className = 'near';
  const text = `${MODES[mode]}${until ? ` until ${until}` : ''}`;
  const choice = make('div', '');
  choice.className = 'choice';
  for (const [key, label] of Object.entries(MODES)) {
    if (key === 'sites' && !sites.length) continue;
    const turn = make('button', label);
    turn.id = `${name}-${key}`;
    turn.setAttribute('aria-label', `${name}: ${label} until the time above`);
    turn.setAttribute('aria-pressed', String(key === mode));
    turn.classList.toggle('primary', key === mode);
    turn.addEventListener('click', () => void act('api/sites/switch', JSON.stringify(
      {group: name, mode: key, until: input('until').value})));
    choice.append(turn);
  }
  part.append(make('h2', name), make('p', text), choice);
  if (sites.length) part.append(make('small', sites.join(', ')));
  return part;
}

/** @param {string} url @param {string} [body] */
const act = (url, body) => settle(ask(url, {method: 'POST', body}));

/** Shows the answer, or its fault. @param {Promise<Status>} answer */
async function settle(answer) {
  try {
    update(await answer);
  } catch (fault) {
    const locked = fault instanceof Locked;
    show(byId('unlock'), locked);
    show(byId('switches'), !locked);
    setText(byId('says'), locked ? 'The switches need the password.' : '');
    const said = fault instanceof Refused;
    setText(byId('fault'), said ? fault.message : 'The gateway does not answer.');
    show(byId('fault'), !locked);
  }
}

const refresh = () => settle(ask('api/sites'));
byId('unlock').addEventListener('submit', (event) => {
  event.preventDefault();
  API.unlock(input('code').value).then(refresh, (fault) => {
    setText(byId('fault'), fault.message);
    show(byId('fault'), true);
  });
});
button('undo').addEventListener('click', () => void act('api/sites/undo'));
await refresh();
setInterval(() => {
  if (byId('unlock').hidden) void refresh();
}, EVERY_MS);
