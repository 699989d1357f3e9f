/** The pages' words for tests: English, all of it. */

import '../../web/lang/en/calibration.js';
import '../../web/lang/en/drawer.js';
import '../../web/lang/en/network.js';
import '../../web/lang/en/recordings.js';
import '../../web/lang/en/seat.js';
import '../../web/lang/en/start.js';
import '../../web/lang/en/trust.js';

/** A text of the car without a translation. @param {string} english @returns {import('../../web/lib/types.js').Text} */
export const textOf = (english) => ({key: 'no_such_key', english, values: {}});
