/** The page's storage in the browser; no-op where it is forbidden. */

/** Null in an app's web view without storage. @typedef {() => Storage | null} Store */

/** @param {Store} storage @param {string} key */
function read(storage, key) {
  try {
    return storage()?.getItem(`fpvcar.${key}`) ?? '';
  } catch (fault) {
    // SecurityError: storage is switched off.
    if (fault instanceof DOMException) return '';
    throw fault;
  }
}

/** @param {Store} storage @param {string} key @param {string} value */
function write(storage, key, value) {
  try {
    storage()?.setItem(`fpvcar.${key}`, value);
  } catch (fault) {
    if (!(fault instanceof DOMException)) throw fault;
  }
}

/** Stays in this browser for good. */
export const saved = {
  get: (/** @type {string} */ key) => read(() => localStorage, key),
  set: (/** @type {string} */ key, /** @type {string} */ value) =>
    write(() => localStorage, key, value),
};

/** Stays until this tab is closed. */
export const session = {
  get: (/** @type {string} */ key) => read(() => sessionStorage, key),
  set: (/** @type {string} */ key, /** @type {string} */ value) =>
    write(() => sessionStorage, key, value),
};

/** The id by which a page gets its own seat back. (randomUUID exists on https only.) */
export function clientId() {
  const old = session.get('client');
  if (old) return old;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  session.set('client', id);
  return id;
}
