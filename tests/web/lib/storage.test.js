// Storage of the page, in browsers that allow it and in others.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {clientId, saved, session} from '../../../web/lib/storage.js';

/** @param {'localStorage' | 'sessionStorage'} name @param {() => any} get */
const store = (name, get) =>
  Object.defineProperty(globalThis, name, {get, configurable: true});

test('values are kept if storage is available', () => {
  /** @type {Record<string, string>} */
  const items = {};
  store('sessionStorage', () => ({
    getItem: (/** @type {string} */ key) => items[key] ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => (items[key] = value),
  }));
  assert.equal(session.get('code'), '');
  const id = clientId();
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(clientId(), id, 'the seat is ours for the session');
});

test('missing or forbidden storage raises no error', () => {
  const forbidden = () => {
    throw new DOMException('switched off', 'SecurityError');
  };
  for (const get of [forbidden, () => null]) {
    store('localStorage', get);
    store('sessionStorage', get);
    saved.set('name', 'Ann');
    assert.equal(saved.get('name'), '');
    assert.equal(clientId().length, 32);
  }
});
