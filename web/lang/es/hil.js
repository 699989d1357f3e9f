/** Spanish: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: 'Asiento del conductor',
    title: 'Retardo de la imagen',
    waiting: 'Esperando a «fpvcar hil --browser» en el coche.',
    measuring: 'Un LED parpadea delante de la cámara y esta página comunica cada destello al coche. Mantén esta página en primer plano.',
  },
});
