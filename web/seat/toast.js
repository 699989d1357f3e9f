/** Short words that go away by themselves. */

import {byId, make} from '../lib/dom.js';

const STAY_MS = 6000;
const MOST = 3;

/** @param {string} text @param {'warn' | 'calm'} [tone] */
export function toast(text, tone = 'calm') {
  const list = byId('toasts');
  for (const old of list.children) {
    if (old.textContent === text) return;
  }
  const element = make('p', text);
  element.className = `toast ${tone}`;
  list.append(element);
  while (list.children.length > MOST) list.firstElementChild?.remove();
  setTimeout(() => element.remove(), STAY_MS);
}
