/** Texts of the children's page, for screen readers only. */

/** @type {Record<string, string>} */
const COLOURS = {
  red: 'red', yellow: 'yellow', green: 'green', blue: 'blue', purple: 'purple', white: 'white',
};
/** @type {Record<string, string>} */
const SHAPES = {
  circle: 'circle', triangle: 'triangle', square: 'square', star: 'star', heart: 'heart',
  diamond: 'diamond',
};
/** @type {Record<string, string>} */
const MODES = {
  show: 'Watch: the car shows a pattern', turn: 'Your turn: repeat the pattern',
  cheer: 'Right!', sad: 'Wrong button. The game is over', rainbow: 'Rainbow',
};

export const STRINGS = {
  heading: (/** @type {string} */ car) => `Buttons of ${car}`,
  button: (/** @type {import('../lib/types.js').ButtonLook} */ {colour, shape}) =>
    `${COLOURS[colour] ?? colour} ${SHAPES[shape] ?? shape}`,
  rainbow: 'Rainbow',
  game: 'Memory game: repeat the pattern',
  sound: 'Sound',
  seat: 'For grown-ups: hold for a second to go to the driver\'s seat',
  lost: 'No link to the car; reconnecting',
  mode: (/** @type {string} */ mode) => MODES[mode] ?? '',
  stars: (/** @type {number} */ done, /** @type {number} */ length, /** @type {number} */ best) =>
    `${done} of ${length}${best ? `; the best was ${best}` : ''}`,
};
