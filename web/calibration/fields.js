/** Controls of the calibration's pages: buttons, inputs with labels, choices. */

import {make} from '../lib/dom.js';

/** @param {string} text @param {() => void} act @param {string} [id] */
export function actionButton(text, act, id = '') {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = text;
  if (id) element.dataset.testid = id;
  element.addEventListener('click', act);
  return element;
}

/** @param {string} text @param {string} [name] of its class */
export function paragraph(text, name = 'hint') {
  const element = make('p', text);
  element.className = name;
  return element;
}

/** @param {Node[]} parts @param {string} [name] of its class */
export function row(parts, name = 'row') {
  const element = make('div', '');
  element.className = name;
  element.append(...parts);
  return element;
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
  const element = document.createElement('label');
  element.append(make('span', label), field);
  return element;
}

/** @param {string} label @param {boolean} on @param {(on: boolean) => void} act @param {string} [id] */
export function check(label, on, act, id = '') {
  const field = document.createElement('input');
  Object.assign(field, {type: 'checkbox', checked: on});
  if (id) field.dataset.testid = id;
  field.addEventListener('change', () => act(field.checked));
  const element = document.createElement('label');
  element.className = 'check';
  element.append(field, ' ', make('span', label));
  return element;
}

/**
 * @param {string} label @param {[string, string][]} choices value and words
 * @param {string} id
 */
export function choice(label, choices, id) {
  const field = document.createElement('select');
  field.dataset.testid = id;
  field.append(...choices.map(([value, text]) => new Option(text, value)));
  return {field, label: labelled(label, field)};
}

/** @param {string} title @param {Node[]} parts @param {string} id */
export function fold(title, parts, id) {
  const element = document.createElement('details');
  element.dataset.testid = id;
  element.append(make('summary', title), ...parts);
  return element;
}
