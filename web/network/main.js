/** Wiring only: the car's network, those near, and the dialog that joins one. */

import {listed} from '../lang/forms.js';
import {t, fill, joined} from '../lang/words.js';
import {button, byId, drawing, fillStrings, input, make, setAttr, setText, show} from '../lib/dom.js';
import {Refused} from '../lib/http.js';
import {API} from './api.js';
import {qrPath, reasonText, scanText, stateText, strength} from './words.js';

/** @import {Network, NetworkState} from '../lib/types.js' */

const EVERY_MS = 2000;
/** A request that hangs in a network that has gone. */
const PATIENCE_MS = 5000;

fillStrings(document, t.network);
setText(byId('says'), t.network.asking);
/** A network whose beacon has no name. @type {Network} */
const HIDDEN = {ssid: '', strength: 0, security: 'key'};
const port = location.port ? `:${location.port}` : '';
const dialog = byId('join', HTMLDialogElement);
let shown = '';

/** @param {NetworkState} state */
function update(state) {
  document.title = fill(t.network.pageTitle, {car: state.own.ssid});
  setText(byId('car'), state.own.ssid);
  setText(byId('says'), stateText(state, port));
  setText(byId('reason'), reasonText(state));
  show(byId('reason'), state.reason !== null);
  show(byId('unlock'), false);
  for (const id of ['near', 'own']) show(byId(id), true);
  setText(byId('seen'), scanText(state));
  button('look').disabled = state.phase === 'own' || state.phase === 'joining';
  const joining = state.phase === 'joining' || state.phase === 'opening';
  list(state.networks, joining);
  setText(byId('own-ssid'), state.own.ssid);
  setText(byId('own-key'), state.own.key);
  setText(byId('own-address'), `http://${state.address}${port}/`);
  const {path, size} = qrPath(state.own.qr);
  setAttr(drawing('qr'), 'viewBox', `0 0 ${size} ${size}`);
  setAttr(drawing('qr-path'), 'd', path);
}

/** @param {Network[]} networks @param {boolean} busy */
function list(networks, busy) {
  const key = JSON.stringify([networks, busy]);
  if (key === shown) return;
  shown = key;
  const items = networks.map((network) => {
    const {ssid, strength: share, security} = network;
    const also = security === 'key' ? '' : t.network.security[security];
    return entry([make('b', ssid), make('small', listed([strength(share), also]))],
      busy || security === 'other', network);
  });
  if (!items.length) items.push(make('li', t.network.nothing));
  byId('list').replaceChildren(...items, entry([make('b', t.network.other)], busy, HIDDEN));
}

/** Makes an entry of the list. @param {Node[]} words @param {boolean} off @param {Network} network */
function entry(words, off, network) {
  const choice = make('button', '');
  choice.append(...words);
  /** @type {HTMLButtonElement} */ (choice).disabled = off;
  choice.addEventListener('click', () => open(network));
  const item = make('li', '');
  item.append(choice);
  return item;
}

/** Asks for the key of a network. @param {Network} network */
function open(network) {
  const free = network.security === 'open';
  const hidden = network === HIDDEN;
  setText(byId('join-title'), hidden ? t.network.otherTitle : fill(t.network.joinTitle, {ssid: network.ssid}));
  const hint = hidden ? t.network.otherHint : free ? t.network.openHint : '';
  setText(byId('join-hint'), joined(hint, t.network.joinHint));
  setText(byId('join-fault'), '');
  show(byId('ssid-part'), hidden);
  show(byId('key-part'), !free);
  input('ssid').value = network.ssid;
  input('ssid').required = hidden;
  input('key').value = '';
  input('key').required = !free && !hidden;
  dialog.showModal();
}

async function join() {
  try {
    await API.join(input('ssid').value, input('key').value);
    dialog.close();
  } catch (fault) {
    setText(byId('join-fault'), errorText(fault));
  }
}

/** @param {unknown} fault */
function errorText(fault) {
  return fault instanceof Refused ? fault.message : t.network.silent;
}

async function refresh() {
  try {
    update(await Promise.race([API.state(), new Promise((_, reject) =>
      setTimeout(reject, PATIENCE_MS, new TypeError('silent')))]));
  } catch (fault) {
    const locked = fault instanceof Refused && fault.locked;
    show(byId('unlock'), locked);
    for (const id of ['near', 'own']) show(byId(id), false);
    setText(byId('says'), locked ? '' : errorText(fault));
    show(byId('reason'), false);
  }
}

async function loop() {
  await refresh();
  setTimeout(loop, EVERY_MS);
}

byId('unlock').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    await API.unlock(input('code').value.trim());
    setText(byId('unlock-fault'), '');
    await refresh();
  } catch (fault) {
    setText(byId('unlock-fault'), errorText(fault));
  }
});
byId('join-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void join();
});
button('join-cancel').addEventListener('click', () => dialog.close());
button('look').addEventListener('click', () => void API.look().then(refresh, () => {}));
Object.assign(window, {network: {asked: false}});
void refresh().then(() => {
  Object.assign(window, {network: {asked: true}});
  setTimeout(loop, EVERY_MS);
});
