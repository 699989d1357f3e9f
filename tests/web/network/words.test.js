// Words of the Wi-Fi page for the car's network.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {textOf} from '../english.js';
import {qrPath, reasonText, scanText, stateText, strength} from '../../../web/network/words.js';

/** @type {import('../../../web/lib/types.js').NetworkState} */
const STATE = {
  phase: 'own', own: {ssid: 'Rusty', key: 'twelve chars', qr: ['10', '01']}, ssid: 'Home',
  reason: textOf('wrong key'), networks: [], seen_s: 7, name: '', driven: false, join_s: 45,
  address: '10.42.0.1',
};

test('phases of the network all have a sentence', () => {
  for (const phase of /** @type {const} */ ([
    'absent', 'searching', 'known', 'opening', 'own', 'joining', 'failed',
  ])) assert.match(stateText({...STATE, phase}, ':8080'), /^The car .*\.$/);
});

test('joining text names the new address and the fallback network', () => {
  const words = stateText({...STATE, phase: 'joining'}, ':8080');
  assert.match(words, /joining Home.*http:\/\/rusty\.local:8080\/.*Rusty is back in about 45\u00a0s/);
  const taken = stateText({...STATE, phase: 'joining', name: 'rusty-2.local'}, '');
  assert.match(taken, /http:\/\/rusty-2\.local\//);
});

test('failed join is shown with its reason', () => {
  assert.equal(reasonText(STATE), 'The car could not join Home: wrong key.');
  assert.equal(reasonText({...STATE, phase: 'absent', reason: textOf('switched off')}), 'switched off.');
  assert.equal(reasonText({...STATE, reason: null}), '');
});

test('QR path has the dark squares and a quiet zone of four', () => {
  assert.deepEqual(qrPath(['10', '01']), {path: 'M4 4h1v1h-1zM5 5h1v1h-1z', size: 10});
});

test('list of networks shows its age', () => {
  assert.equal(scanText({...STATE, phase: 'known', seen_s: null}), 'No networks found yet.');
  assert.equal(scanText({...STATE, phase: 'known'}), 'Last search: 7 seconds ago.');
  assert.match(scanText({...STATE, seen_s: 300}), /5 minutes ago\. The car cannot search/);
  assert.match(scanText({...STATE, seen_s: 7200}), /2 hours ago/);
  assert.match(scanText({...STATE, seen_s: 90_000}), /1 day ago/);
});

test('signal strength is shown as a word', () => {
  assert.deepEqual([66, 65, 40, 39].map(strength), ['strong', 'good', 'good', 'weak']);
});
