/** How a system comes to trust the car's certificate, and a look whether it does. */

import {t, fill} from '../lang/words.js';
import {button, byId, fillStrings, make, setText, show} from '../lib/dom.js';
import {SYSTEMS, grouped, systemOf} from './strings.js';

/** @import {Authority} from '../lib/types.js' */

const PATIENCE_MS = 5000;

document.title = t.trust.title;
fillStrings(document, t.trust);
setText(byId('says'), t.trust.asking);

/** @param {Authority} about */
function update({https_port: port, name, fingerprint}) {
  setText(byId('says'), port ? '' : t.trust.needless);
  show(byId('steps'), port > 0);
  setText(byId('name'), name);
  setText(byId('fingerprint'), grouped(fingerprint));
  const secure = `https://${location.hostname}:${port}/`;
  byId('secure', HTMLAnchorElement).href = secure;
  if (location.protocol === 'https:') {
    const plain = `http://${location.hostname}:${port - 1}/trust`;
    setText(byId('verdict'), fill(t.trust.secure, {address: plain}));
    show(button('check'), false);
  } else {
    button('check').addEventListener('click', () => void check(`${secure}api/ping`));
  }
}

/** Looks whether the browser takes an answer by https. @param {string} url */
async function check(url) {
  button('check').disabled = true;
  setText(byId('verdict'), t.trust.looking);
  /** @type {RequestInit} */
  const plain = {mode: 'no-cors', cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS)};
  try {
    await fetch(url, plain);
    setText(byId('verdict'), t.trust.trusted);
  } catch {
    setText(byId('verdict'), t.trust.strange);
  }
  button('check').disabled = false;
}

const mine = systemOf(navigator.userAgent, navigator.maxTouchPoints);
byId('systems').append(...SYSTEMS.map(({name, steps}, index) => {
  const system = document.createElement('details');
  system.open = index === mine;
  const list = make('ol', '');
  list.append(...steps().map((step) => make('li', step)));
  system.append(make('summary', name), list);
  return system;
}));
try {
  const answer = await fetch('api/trust');
  if (!answer.ok) throw new Error(`${answer.status}`);
  update(await answer.json());
} catch {
  setText(byId('says'), t.trust.silent);
}
