/** The switches of the Wi-Fi's groups: base-station/fpvsites/page.py. */

import {listed} from '../lang/forms.js';
import {t, LOCALE, fill, said} from '../lang/words.js';
import {button, byId, fillStrings, input, make, setText, show} from '../lib/dom.js';
import {Refused, askJson} from '../lib/http.js';
import {API} from '../network/api.js';

/** @import {Text} from '../lib/types.js' */
/**
 * @typedef {'everything' | 'sites' | 'nothing'} Mode
 * @typedef {{name: string, mode: Mode, until: string, until_s: number, sites: string[]}} Group
 * @typedef {{groups: Group[], change: Text | null, fault: Text | null,
 *   in_force: boolean, off: boolean, now: string}} Status
 */

const EVERY_MS = 3000;
const HOUR_MIN = 60;
/** @type {Mode[]} */
const MODES = ['everything', 'sites', 'nothing'];
const timeOf = new Intl.DateTimeFormat(LOCALE, {weekday: 'short', hour: '2-digit', minute: '2-digit'});
let shown = '';

/** @param {Status} status */
function update(status) {
  const {groups, change, fault, in_force: inForce, off, now} = status;
  show(byId('unlock'), false);
  show(byId('switches'), true);
  if (!input('until').value) input('until').value = later(now);
  const state = off ? t.sites.off : inForce ? t.sites.inForce : t.sites.notYet;
  setText(byId('says'), state);
  setText(byId('fault'), said(fault));
  show(byId('fault'), fault !== null);
  show(button('undo'), change !== null);
  setText(button('undo'), fill(t.sites.undo, {change: said(change)}));
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
function section({name, mode, until, until_s: untilS, sites}) {
  const part = make('section', '');
  part.className = 'near';
  const {modes} = t.sites;
  const text = until ? fill(t.sites.modeUntil, {mode: modes[mode], time: timeOf.format(untilS * 1000)}) : modes[mode];
  const choice = make('div', '');
  choice.className = 'choice';
  for (const key of MODES) {
    if (key === 'sites' && !sites.length) continue;
    const turn = make('button', modes[key]);
    turn.id = `${name}-${key}`;
    turn.setAttribute('aria-label', fill(t.sites.turn, {name, mode: modes[key]}));
    turn.setAttribute('aria-pressed', String(key === mode));
    turn.classList.toggle('primary', key === mode);
    turn.addEventListener('click', () => void act('api/sites/switch', JSON.stringify(
      {group: name, mode: key, until: input('until').value})));
    choice.append(turn);
  }
  part.append(make('h2', name), make('p', text), choice);
  if (sites.length) part.append(make('small', listed(sites)));
  return part;
}

/** @param {string} url @param {string} [body] */
const act = (url, body) => settle(askJson(url, {method: 'POST', body}));

/** Shows the answer, or its fault. @param {Promise<Status>} answer */
async function settle(answer) {
  try {
    update(await answer);
  } catch (fault) {
    const refused = fault instanceof Refused ? fault : null;
    const locked = refused?.locked === true;
    const elsewhere = refused?.status === 404;  // the page came from a car, not from the gateway
    show(byId('seat'), elsewhere);
    show(byId('unlock'), locked);
    show(byId('switches'), !locked && !elsewhere);
    setText(byId('says'), locked ? t.sites.locked : elsewhere ? t.sites.elsewhere : '');
    setText(byId('fault'), refused?.message ?? t.sites.silent);
    show(byId('fault'), !locked && !elsewhere);
  }
}

document.title = t.sites.title;
fillStrings(document, t.sites);
setText(byId('says'), t.sites.asking);
const refresh = () => settle(askJson('api/sites'));
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
