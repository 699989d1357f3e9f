/** The trust page's texts for each system, from lang/. */

import {t} from '../lang/words.js';

/** How each system is told. @type {{name: string, is: RegExp, steps: () => string[]}[]} */
export const SYSTEMS = [
  {
    name: 'iPhone, iPad', is: /iPhone|iPad/,
    steps: () => [t.trust.ios.get, t.trust.ios.install, t.trust.ios.trust],
  },
  {
    name: 'Android', is: /Android/,
    steps: () => [t.trust.get, t.trust.android.install, t.trust.android.firefox],
  },
  {
    name: 'Windows', is: /Windows/,
    steps: () => [t.trust.windows.get, t.trust.windows.install, t.trust.windows.finish],
  },
  {
    name: 'macOS', is: /Macintosh/,
    steps: () => [t.trust.macos.get, t.trust.macos.trust, t.trust.macos.close],
  },
  {
    name: 'Linux', is: /Linux|X11/,
    steps: () => [t.trust.get, t.trust.linux.chrome, t.trust.linux.firefox],
  },
];

/** The system a browser reports: its index in SYSTEMS, -1 if unknown.
 * @param {string} agent @param {number} touches how many fingers its screen feels */
export const systemOf = (agent, touches) =>
  // An iPad calls itself a Macintosh, which has no touch screen.
  (/Macintosh/.test(agent) && touches > 1 ? 0 : SYSTEMS.findIndex(({is}) => is.test(agent)));

/** A fingerprint as systems show it. @param {string} hex */
export const grouped = (hex) => (hex.toUpperCase().match(/../g) ?? []).join(':');
