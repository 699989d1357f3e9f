/** French: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: 'Siège du conducteur',
    title: 'Retard de l’image',
    waiting: 'En attente de « fpvcar hil --browser » sur la voiture.',
    measuring: 'Une LED clignote devant la caméra, et cette page signale chaque éclair à la voiture. Garde cette page au premier plan.',
  },
});
