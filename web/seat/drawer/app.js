/** The page as an app: its language, installing it, and the offline page. */

import {LANGUAGE} from '../../lang/words.js';
import {button, byId, show} from '../../lib/dom.js';
import {saved} from '../../lib/storage.js';

/** Each in its own words. @type {Record<string, string>} */
export const LANGUAGES = {
  en: 'English', de: 'Deutsch', es: 'Español', fr: 'Français', fi: 'Suomi', zh: '中文',
};

/** A browser's offer to install the page. @typedef {Event & {prompt: () => Promise<unknown>}} Offer */

export class App {
  constructor() {
    for (const id of ['language', 'naming-language']) this.choose(byId(id, HTMLSelectElement));
    this.offer();
    addEventListener('beforeinstallprompt', () => this.offer());
    addEventListener('appinstalled', () => show(button('install'), false));
    button('install').addEventListener('click', () => {
      void this.asked?.prompt();
      show(button('install'), false);
    });
    void keepOfflinePage();
  }

  /** @param {HTMLSelectElement} list */
  choose(list) {
    list.replaceChildren(...Object.entries(LANGUAGES).map(([language, name]) => {
      const option = new Option(name, language);
      option.lang = language;
      return option;
    }));
    list.value = LANGUAGE;
    list.addEventListener('change', () => {
      saved.set('language', list.value);
      location.reload();
    });
  }

  /** The offer that boot.js kept, if the browser made one. @returns {Offer | undefined} */
  get asked() {
    return /** @type {{installing?: Offer}} */ (/** @type {unknown} */ (window)).installing;
  }

  offer() {
    show(button('install'), this.asked !== undefined);
  }
}

/**
 * Has the offline page held where the browser allows it: https that it trusts, loopback. Not in a frame
 * of another site: the worker's requests would have no cookie there.
 */
async function keepOfflinePage() {
  if (self !== top || !isSecureContext || !('serviceWorker' in navigator)) return;
  try {
    await navigator.serviceWorker.register(`offline-worker.js?language=${LANGUAGE}`);
  } catch {
    // Its certificate was waved through by hand, or storage is off: the page works without.
  }
}
