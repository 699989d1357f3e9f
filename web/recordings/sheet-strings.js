/** What the page says of the contact sheet. */

export const SHEET_STRINGS = {
  open: 'Contact sheet',
  close: 'Close the contact sheet',
  /** @param {string} time */
  go: (time) => `Go to ${time}`,
  /** @param {string} time */
  none: (time) => `${time}: no picture in this minute`,
};
