/** Texts of the children's page, from lang/; for screen readers only. */

import {t, fill, number} from '../lang/words.js';

/** @param {object} texts @param {string} name */
const named = (texts, name) => /** @type {Record<string, string | undefined>} */ (texts)[name];

export const STRINGS = {
  heading: (/** @type {string} */ car) => fill(t.buttons.heading, {car}),
  button: (/** @type {import('../lib/types.js').ButtonLook} */ {colour, shape}) => fill(t.buttons.button, {
    colour: named(t.buttons.colours, colour) ?? colour, shape: named(t.buttons.shapes, shape) ?? shape,
  }),
  mode: (/** @type {string} */ mode) => named(t.buttons.modes, mode) ?? '',
  stars: (/** @type {number} */ done, /** @type {number} */ length, /** @type {number} */ best) =>
    fill(best ? t.buttons.starsBest : t.buttons.stars,
      {done: number(done), length: number(length), best: number(best)}),
};
