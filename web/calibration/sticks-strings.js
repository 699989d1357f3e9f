/** Names of sticks and gamepad parts, from lang/. */

import {titled} from '../lang/forms.js';
import {t, fill, percent} from '../lang/words.js';
import {padName} from '../lib/gamepads.js';

/** @typedef {keyof typeof t.sticks.roles} Role */

export const STICKS = {
  expo: (/** @type {number} */ share) => fill(t.sticks.expo, {much: percent(share)}),
  dead: (/** @type {number} */ share) => percent(share),
  changeOf: (/** @type {Role} */ role) => fill(t.sticks.changeOf, {role: t.sticks.roles[role]}),
  here: (/** @type {string} */ id) => fill(t.sticks.here, {name: padName(id)}),
  pushNow: (/** @type {Role} */ role) => fill(t.sticks.pushNow, {role: t.sticks.roles[role]}),
  role: (/** @type {Role} */ role, /** @type {string} */ part) =>
    titled(t.sticks.roles[role], STICKS.part(part)),
  part: (/** @type {string} */ part) => (part.startsWith('b')
    ? fill(t.sticks.button, {number: part.slice(1)})
    : fill(t.sticks.axis, {number: part.slice(1, -1), sign: part.endsWith('-') ? '−' : '+'})),
};
