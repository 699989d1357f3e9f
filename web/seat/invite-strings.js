/** Words of invite.js. */

export const INVITE_STRINGS = {
  title: 'Invite somebody to drive',
  howLong: 'For how long',
  /** @type {[number, string][]} */
  lengths: [[30, 'half an hour'], [60, 'an hour'], [120, '2 hours'], [480, '8 hours']],
  invite: 'Make an invitation',
  making: 'Making an invitation…',
  qr: 'A QR code of the invitation',
  made: (/** @type {string} */ until) =>
    `Let them scan this. One phone or computer may drive with it until ${until}; ` +
    'then it ends by itself. Above it can be ended sooner.',
  silent: 'The car did not answer. Try again.',
};

/** The time of day in so many seconds, as this place writes it. @param {number} seconds */
export const timeIn = (seconds) =>
  new Date(Date.now() + seconds * 1000).toLocaleTimeString([], {timeStyle: 'short'});
