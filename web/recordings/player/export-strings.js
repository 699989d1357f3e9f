/** Texts of a film or zip export, from lang/. */

import {listed} from '../../lang/forms.js';
import {t, fill, percent} from '../../lang/words.js';
import {STRINGS} from '../strings.js';

/** "3 minutes to go" @param {number | null} seconds */
const left = (seconds) => (seconds === null ? ''
  : fill(t.recordings.toGo, {time: STRINGS.spoken(Math.ceil(seconds))}));

export const EXPORT_STRINGS = {
  planning: (/** @type {string} */ name) => fill(t.recordings.planning, {name}),
  ready: (/** @type {string} */ name) => fill(t.recordings.ready, {name}),
  sending: (/** @type {string} */ name) => fill(t.recordings.sending, {name}),
  stopped: (/** @type {string} */ name) => fill(t.recordings.cutOff, {name}),
  /** @param {number} share @param {number | null} leftS */
  planned: (share, leftS) => listed([percent(Math.min(0.99, Math.floor(share * 100) / 100)), left(leftS)]),
  /**
   * @param {number} done @param {number} total @param {boolean} exact
   * @param {number | null} bytesS @param {number | null} leftS
   */
  progress: (done, total, exact, bytesS, leftS) => {
    const rate = bytesS === null ? '' : `${STRINGS.size(bytesS)}/s`;
    const far = fill(exact ? t.recordings.progress : t.recordings.progressAbout,
      {done: STRINGS.size(done), total: STRINGS.size(total)});
    return listed([far, rate, left(leftS)]);
  },
  /** @param {string} name @param {number} bytes */
  sent: (name, bytes) => fill(t.recordings.sent, {name, size: STRINGS.size(bytes)}),
};
