/** English: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: 'Driver’s seat',
    title: 'Picture delay',
    waiting: 'Waiting for “fpvcar hil --browser” on the car.',
    measuring: 'An LED in front of the camera flashes, and this page reports each flash to the car. Keep this page in the foreground.',
  },
});
