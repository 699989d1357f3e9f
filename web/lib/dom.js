/** Finds elements by id and writes only changes to them. */

/**
 * The element with this id. Throws if missing.
 * @template {Element} [T=HTMLElement]
 * @param {string} id @param {new () => T} [kind] @returns {T}
 */
export function byId(id, kind) {
  const element = document.getElementById(id);
  const type = /** @type {new () => Element} */ (kind ?? HTMLElement);
  if (!(element instanceof type)) throw new Error(`no #${id} in the page`);
  return /** @type {T} */ (/** @type {unknown} */ (element));
}

/** @param {string} id */
export const button = (id) => byId(id, HTMLButtonElement);
/** @param {string} id */
export const input = (id) => byId(id, HTMLInputElement);
/** @param {string} id */
export const drawing = (id) => byId(id, SVGElement);

const NOT_TYPED = ['button', 'checkbox', 'color', 'file', 'image', 'radio', 'range', 'reset', 'submit'];

/** Do the keys typed there become text? @param {EventTarget | null} target */
export const isTextField = (target) => target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement ? !NOT_TYPED.includes(target.type)
    : target instanceof HTMLElement && target.isContentEditable);

const NAMES = /** @type {Record<string, string>} */ ({
  Up: 'ArrowUp', Down: 'ArrowDown', Left: 'ArrowLeft', Right: 'ArrowRight', Esc: 'Escape',
  ' ': 'Space', Spacebar: 'Space',
});
const NUMBERS = /** @type {Record<number, string>} */ ({
  13: 'Enter', 27: 'Escape', 32: 'Space', 37: 'ArrowLeft', 38: 'ArrowUp', 39: 'ArrowRight',
  40: 'ArrowDown',
});

/**
 * The key's code, as on a US keyboard. TV remotes, old web views and some Android keyboards send
 * none: then by its name or, failing that, its number. '' if unknown.
 * @param {Pick<KeyboardEvent, 'code' | 'key' | 'keyCode'>} event
 */
export function codeOf({code, key, keyCode}) {
  if (code && code !== 'Unidentified') return code;
  const letter = String.fromCharCode(keyCode);
  const name = key && key !== 'Unidentified' ? key
    : NUMBERS[keyCode] ?? (/[A-Z0-9]/.test(letter) ? letter : '');
  if (/^[a-z]$/i.test(name)) return `Key${name.toUpperCase()}`;
  return /^\d$/.test(name) ? `Digit${name}` : NAMES[name] ?? name;
}

/**
 * Sends all events of a pointer to the element; false if the pointer has gone already.
 * @param {Element} element @param {number} pointerId
 */
export function capture(element, pointerId) {
  try {
    element.setPointerCapture(pointerId);
    return true;
  } catch (fault) {
    if (!(fault instanceof DOMException)) throw fault;
    return false;
  }
}

/** @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {string} name @param {string} value */
export function setAttr(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** @param {HTMLElement | SVGElement} element @param {boolean} on */
export function show(element, on) {
  if (element.hasAttribute('hidden') === on) element.toggleAttribute('hidden', !on);
}

/**
 * @param {string} tag @param {Record<string, string | number>} fields
 * @param {string} [text]
 */
export function svg(tag, fields, text = '') {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(fields)) element.setAttribute(name, String(value));
  element.textContent = text;
  return element;
}

/** @param {string} tag @param {string} text */
export function make(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

/**
 * Fills in the strings that the markup names by `data-t` and `data-t-label`.
 * @param {ParentNode} root @param {object} texts
 */
export function fillStrings(root, texts) {
  const strings = /** @type {Record<string, string>} */ (texts);
  for (const element of root.querySelectorAll('[data-t], [data-t-label]')) {
    const {t, tLabel} = /** @type {HTMLElement} */ (element).dataset;
    if (t) element.textContent = strings[t];
    if (tLabel) element.setAttribute('aria-label', strings[tLabel]);
  }
}

/**
 * Lets a link download a file of the car. In a frame of another site Chromium sends no cookie with a
 * download, but sends it with a navigation, which the answer turns into a download.
 * @param {HTMLAnchorElement} link @param {string} href @param {string} name
 */
export function downloads(link, href, name) {
  link.href = href;
  if (self === top) link.download = name;
}

/** Lists names and values, if they changed. @param {HTMLElement} list @param {[string, string][]} rows */
export function fillRows(list, rows) {
  const text = rows.flat().join('\n');
  if (list.dataset.words === text) return;
  list.dataset.words = text;
  list.replaceChildren(...rows.flatMap(([name, value]) => [make('dt', name), make('dd', value)]));
}
