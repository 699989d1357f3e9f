/** The trust page's texts for each system, from lang/. */

import {W} from '../lang/words.js';

/** How each system is told. @type {{name: string, is: RegExp, steps: () => string[]}[]} */
export const SYSTEMS = [
  {
    name: 'iPhone, iPad', is: /iPhone|iPad/,
    steps: () => [W.trust.ios.get, W.trust.ios.install, W.trust.ios.trust],
  },
  {
    name: 'Android', is: /Android/,
    steps: () => [W.trust.get, W.trust.android.install, W.trust.android.firefox],
  },
  {
    name: 'Windows', is: /Windows/,
    steps: () => [W.trust.windows.get, W.trust.windows.install, W.trust.windows.finish],
  },
  {
    name: 'macOS', is: /Macintosh/,
    steps: () => [W.trust.macos.get, W.trust.macos.trust, W.trust.macos.close],
  },
  {
    name: 'Linux', is: /Linux|X11/,
    steps: () => [W.trust.get, W.trust.linux.chrome, W.trust.linux.firefox],
  },
];

/** The system a browser reports: its index in SYSTEMS, -1 if unknown.
 * @param {string} agent @param {number} touches how many fingers its screen feels */
export const systemOf = (agent, touches) =>
  // An iPad calls itself a Macintosh, which has no touch screen.
  (/Macintosh/.test(agent) && touches > 1 ? 0 : SYSTEMS.findIndex(({is}) => is.test(agent)));

/** A fingerprint as systems show it. @param {string} hex */
export const grouped = (hex) => (hex.toUpperCase().match(/../g) ?? []).join(':');
