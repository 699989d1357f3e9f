/** Texts of a film or zip export, from lang/. */

import {W, fill, percent} from '../lang/words.js';
import {STRINGS} from './strings.js';

/** ", 3 minutes to go" @param {number | null} seconds */
const left = (seconds) => (seconds === null ? ''
  : `, ${fill(W.recordings.toGo, {time: STRINGS.spoken(Math.ceil(seconds))})}`);

export const EXPORT_STRINGS = {
  planning: (/** @type {string} */ name) => fill(W.recordings.planning, {name}),
  ready: (/** @type {string} */ name) => fill(W.recordings.ready, {name}),
  sending: (/** @type {string} */ name) => fill(W.recordings.sending, {name}),
  stopped: (/** @type {string} */ name) => fill(W.recordings.cutOff, {name}),
  /** @param {number} share @param {number | null} leftS */
  planned: (share, leftS) => percent(Math.min(0.99, Math.floor(share * 100) / 100)) + left(leftS),
  /**
   * @param {number} done @param {number} total @param {boolean} exact
   * @param {number | null} bytesS @param {number | null} leftS
   */
  progress: (done, total, exact, bytesS, leftS) => {
    const rate = bytesS === null ? '' : `, ${STRINGS.size(bytesS)}/s`;
    const far = fill(exact ? W.recordings.progress : W.recordings.progressAbout,
      {done: STRINGS.size(done), total: STRINGS.size(total)});
    return far + rate + left(leftS);
  },
  /** @param {string} name @param {number} bytes */
  sent: (name, bytes) => fill(W.recordings.sent, {name, size: STRINGS.size(bytes)}),
};
