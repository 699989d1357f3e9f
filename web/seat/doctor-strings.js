/** The strings of the list of what is wrong with the car. */

export const STRINGS = {
  looking: 'The car looks at itself: pins, sensors, camera, card, Wi-Fi. It takes up to half a minute …',
  silent: 'The car does not answer. Look again when the link is back.',
  levels: {note: 'Note', warning: 'Warning', fault: 'Fault'},
  mend: 'What to do',
  /** @param {number} count */
  found: (count) => (count === 0 ? 'Nothing is wrong with what was asked.'
    : count === 1 ? 'One thing to look at.' : `${count} things to look at, the worst first.`),
  /** @param {string[]} parts */
  well: (parts) => `Well: ${parts.join(', ')}.`,
  /** @param {number} count */
  notAsked: (count) => `Not asked (${count})`,
};
