/**
 * The messages of /ws/buttons: JSON text, one a frame, as in pi/fpvcar/wire/buttons.py and
 * tests/vectors/buttons_*.json. Masks have a bit for each button.
 */

import {VERSION, encodeAs, list, parseAs, text, whole} from '../lib/wire.js';

/** @import {ButtonsDown, ButtonsUp} from '../lib/types.js' */

export const BUTTONS_MAX = 6;
const mask = whole(0, 2 ** BUTTONS_MAX - 1);
const count = whole(0, 2 ** 53 - 1);
const anyText = text(Infinity);

/** Messages from the page. */
const UP = {
  hello: {v: whole(VERSION, VERSION)},
  hold: {held: mask},
  choose: {mode: text(7, /^(free|rainbow|game)$/)},
};

/** Messages from the car. */
const DOWN = {
  panel: {v: count, car: anyText, buttons: list({name: anyText, colour: anyText, shape: anyText})},
  glow: {seq: count, lit: mask, mode: anyText, length: count, done: count, best: count},
  error: {what: anyText},
};

/**
 * The text frame of a message. Throws WireError if the car would refuse it.
 * @param {ButtonsUp} message
 */
export const encode = (message) => encodeAs(UP, message);

/** The message in a frame; null for an unknown kind. Throws WireError. @param {string} frame */
export const parse = (frame) =>
  /** @type {ButtonsDown | null} */ (parseAs(DOWN, frame));
