/** Controls of the calibration's pages: buttons, inputs with labels, choices. */

import {make} from '../lib/dom.js';

/** @param {string} text @param {() => void} act @param {string} [id] */
export function push(text, act, id = '') {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  if (id) made.dataset.testid = id;
  made.addEventListener('click', act);
  return made;
}

/** @param {string} text @param {string} [name] of its class */
export function words(text, name = 'hint') {
  const made = make('p', text);
  made.className = name;
  return made;
}

/** @param {Node[]} parts @param {string} [name] of its class */
export function row(parts, name = 'row') {
  const made = make('div', '');
  made.className = name;
  made.append(...parts);
  return made;
}

/** @param {string} label @param {string} id @param {number | ''} [value] */
export function figure(label, id, value = '') {
  const field = document.createElement('input');
  Object.assign(field, {type: 'number', step: 'any', inputMode: 'decimal', value: String(value)});
  field.dataset.testid = id;
  return {field, label: labelled(label, field)};
}

/** @param {string} label @param {HTMLElement} field */
export function labelled(label, field) {
  const made = document.createElement('label');
  made.append(make('span', label), field);
  return made;
}

/** @param {string} label @param {boolean} on @param {(on: boolean) => void} act @param {string} [id] */
export function check(label, on, act, id = '') {
  const field = document.createElement('input');
  Object.assign(field, {type: 'checkbox', checked: on});
  if (id) field.dataset.testid = id;
  field.addEventListener('change', () => act(field.checked));
  const made = document.createElement('label');
  made.className = 'check';
  made.append(field, ' ', make('span', label));
  return made;
}

/**
 * @param {string} label @param {[string, string][]} choices value and words
 * @param {string} id
 */
export function choice(label, choices, id) {
  const field = document.createElement('select');
  field.dataset.testid = id;
  field.append(...choices.map(([value, said]) => new Option(said, value)));
  return {field, label: labelled(label, field)};
}

/** @param {string} title @param {Node[]} parts @param {string} id */
export function fold(title, parts, id) {
  const made = document.createElement('details');
  made.dataset.testid = id;
  made.append(make('summary', title), ...parts);
  return made;
}
