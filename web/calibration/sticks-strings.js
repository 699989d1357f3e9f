/** The strings of sticks and gamepad. */

/** @type {Record<string, string>} */
const ROLES = {
  forward: 'Forward', back: 'Back', left: 'Left', right: 'Right', lights: 'Lights', stop: 'STOP',
  snapshot: 'Save the picture', mark: 'Mark',
};

export const STICKS = {
  leftHanded: 'Left-handed: the right thumb drives, the left one steers',
  expoLabel: 'Slow is easier, towards the right',
  expo: (/** @type {number} */ share) => `${Math.round(share * 100)} % of the curve`,
  change: 'Change',
  changeOf: (/** @type {string} */ role) => `Change ${ROLES[role]}`,
  none: 'No gamepad: connect one, and push a button on it.',
  here: (/** @type {string} */ id) => `${id.replace(/\s*\(.*$/, '') || id}. Push and move: its picture follows.`,
  pushNow: (/** @type {string} */ role) =>
    `Now push, or move, what is to be “${ROLES[role]}”. Meanwhile it drives nothing; STOP stops as before.`,
  role: (/** @type {string} */ role, /** @type {string} */ part) => `${ROLES[role]}: ${STICKS.part(part)}`,
  part: (/** @type {string} */ part) => (part.startsWith('b') ? `button ${part.slice(1)}`
    : `axis ${part.slice(1, -1)} ${part.endsWith('-') ? '−' : '+'}`),
};
