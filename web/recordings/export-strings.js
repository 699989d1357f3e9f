/** What the page says of a film or a zip that is made. */

import {STRINGS} from './strings.js';

/** @param {number | null} seconds */
const left = (seconds) => seconds === null ? '' : `, ${STRINGS.spoken(Math.ceil(seconds))} to go`;

export const EXPORT_STRINGS = {
  asking: 'Asking the car …',
  planning: (/** @type {string} */ name) => `${name}: the car looks through the pictures.`,
  ready: (/** @type {string} */ name) => `${name} is ready. If your browser asks, let it download.`,
  sending: (/** @type {string} */ name) => `${name} is on its way to the downloads of your browser.`,
  /** @param {number} share @param {number | null} leftS */
  planned: (share, leftS) => `${Math.min(99, Math.floor(share * 100))} %${left(leftS)}`,
  /**
   * @param {number} done @param {number} total @param {boolean} exact
   * @param {number | null} bytesS @param {number | null} leftS
   */
  progress: (done, total, exact, bytesS, leftS) => {
    const rate = bytesS === null ? '' : `, ${STRINGS.size(bytesS)}/s`;
    return `${STRINGS.size(done)} of ${exact ? '' : 'about '}${STRINGS.size(total)}${rate}${left(leftS)}`;
  },
  /** @param {string} name @param {number} bytes */
  sent: (name, bytes) => `${name}: ${STRINGS.size(bytes)} sent. It is among the downloads of your browser.`,
  cancelled: 'Cancelled. What your browser has of it is not whole.',
  stopped: (/** @type {string} */ name) => `${name} was cut off: your browser took no more, or somebody cancelled it. What it has is not whole.`,
  failed: (/** @type {string} */ why) => `That did not work: ${why}`,
};
