/** The switches of the Wi-Fi's groups: base-station/fpvsites/page.py. */

import {listed, refusalText, withTexts} from '../lang/forms.js';
import {t, LOCALE, fill} from '../lang/words.js';
import {button, byId, fillStrings, input, make, setText, show} from '../lib/dom.js';
import {API, Locked, Refused} from '../network/api.js';

/**
 * @typedef {'everything' | 'sites' | 'nothing'} Mode
 * @typedef {{name: string, mode: Mode, until: string, until_s: number, sites: string[]}} Group
 * @typedef {{groups: Group[], change: string, fault: string, in_force: boolean, off: boolean,
 *   now: string, sentences: Record<string, string>}} Status
 */

/** The page came from a car, not from the gateway. */
class Elsewhere extends Error {}

const EVERY_MS = 3000;
const HOUR_MIN = 60;
/** @type {Mode[]} */
const MODES = ['everything', 'sites', 'nothing'];
const timeOf = new Intl.DateTimeFormat(LOCALE, {weekday: 'short', hour: '2-digit', minute: '2-digit'});
let shown = '';

/** @param {string} url @param {RequestInit} [options] @returns {Promise<Status>} */
async function ask(url, options) {
  const answer = await fetch(url, options);
  if (answer.ok) return withTexts(await answer.json());
  if (answer.status === 404) throw new Elsewhere();
  const message = await refusalText(answer);
  throw answer.status === 401 ? new Locked(message) : new Refused(message);
}

/** @param {Status} status */
function update(status) {
  const {groups, change, fault, in_force: inForce, off, now} = status;
  show(byId('unlock'), false);
  show(byId('switches'), true);
  if (!input('until').value) input('until').value = later(now);
  const state = off ? t.sites.off : inForce ? t.sites.inForce : t.sites.notYet;
  setText(byId('says'), state);
  setText(byId('fault'), fault);
  show(byId('fault'), fault !== '');
  show(button('undo'), change !== '');
  setText(button('undo'), fill(t.sites.undo, {change}));
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
const act = (url, body) => settle(ask(url, {method: 'POST', body}));

/** Shows the answer, or its fault. @param {Promise<Status>} answer */
async function settle(answer) {
  try {
    update(await answer);
  } catch (fault) {
    const locked = fault instanceof Locked;
    const elsewhere = fault instanceof Elsewhere;
    show(byId('seat'), elsewhere);
    show(byId('unlock'), locked);
    show(byId('switches'), !locked && !elsewhere);
    setText(byId('says'), locked ? t.sites.locked : elsewhere ? t.sites.elsewhere : '');
    const said = fault instanceof Refused;
    setText(byId('fault'), said ? fault.message : t.sites.silent);
    show(byId('fault'), !locked && !elsewhere);
  }
}

document.title = t.sites.title;
fillStrings(document, t.sites);
setText(byId('says'), t.sites.asking);
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
