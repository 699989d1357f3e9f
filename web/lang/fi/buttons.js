/** Finnish: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: 'Napit',
    heading: 'Auton {car} napit',
    button: '{colour} {shape}',
    colours: {red: 'punainen', yellow: 'keltainen', green: 'vihreä', blue: 'sininen', purple: 'violetti', white: 'valkoinen'},
    shapes: {circle: 'ympyrä', triangle: 'kolmio', square: 'neliö', star: 'tähti', heart: 'sydän', diamond: 'vinoneliö'},
    modes: {
      show: 'Katso: auto näyttää kuvion',
      turn: 'Sinun vuorosi: toista kuvio',
      cheer: 'Oikein!',
      sad: 'Väärä nappi. Peli päättyi',
      rainbow: 'Sateenkaari',
    },
    rainbow: 'Sateenkaari',
    game: 'Muistipeli: toista kuvio',
    sound: 'Ääni',
    seat: 'Aikuisille: pidä sekunti pohjassa, niin pääset kuljettajan paikalle',
    lost: 'Ei yhteyttä autoon; yhdistetään uudelleen',
    stars: '{done}/{length}',
    starsBest: '{done}/{length}; ennätys {best}',
  },
});
