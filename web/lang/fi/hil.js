/** Finnish: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: 'Kuljettajan paikka',
    title: 'Kuvan viive',
    waiting: 'Odotetaan, että autossa suoritetaan ”fpvcar hil --browser”.',
    measuring: 'Kameran edessä vilkkuu LED, ja tämä sivu ilmoittaa jokaisen välähdyksen autolle. Pidä tämä sivu näkyvissä.',
  },
});
