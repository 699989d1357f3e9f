/** German: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: 'Fahrersitz',
    title: 'Bildverzögerung',
    waiting: 'Warten auf „fpvcar hil --browser“ auf dem Auto.',
    measuring: 'Eine LED vor der Kamera blinkt, und diese Seite meldet dem Auto jedes Blinken. Lass diese Seite im Vordergrund.',
  },
});
