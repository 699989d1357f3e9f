/** Names of sticks and gamepad parts, from lang/. */

import {W, fill, percent} from '../lang/words.js';

/** @typedef {keyof typeof W.sticks.roles} Role */

export const STICKS = {
  expo: (/** @type {number} */ share) => fill(W.sticks.expo, {much: percent(share)}),
  changeOf: (/** @type {Role} */ role) => fill(W.sticks.changeOf, {role: W.sticks.roles[role]}),
  here: (/** @type {string} */ id) =>
    fill(W.sticks.here, {name: id.replace(/\s*\(.*$/, '') || id}),
  pushNow: (/** @type {Role} */ role) => fill(W.sticks.pushNow, {role: W.sticks.roles[role]}),
  role: (/** @type {Role} */ role, /** @type {string} */ part) =>
    `${W.sticks.roles[role]}: ${STICKS.part(part)}`,
  part: (/** @type {string} */ part) => (part.startsWith('b')
    ? fill(W.sticks.button, {number: part.slice(1)})
    : fill(W.sticks.axis, {number: part.slice(1, -1), sign: part.endsWith('-') ? '−' : '+'})),
};
