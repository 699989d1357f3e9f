/** French: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: 'Boutons',
    heading: 'Boutons de {car}',
    button: '{shape} de couleur {colour}',
    colours: {red: 'rouge', yellow: 'jaune', green: 'verte', blue: 'bleue', purple: 'violette', white: 'blanche'},
    shapes: {circle: 'rond', triangle: 'triangle', square: 'carré', star: 'étoile', heart: 'cœur', diamond: 'losange'},
    modes: {
      show: 'Regarde : la voiture montre une suite',
      turn: 'À toi : répète la suite',
      cheer: 'Bravo !',
      sad: 'Mauvais bouton. La partie est finie',
      rainbow: 'Arc-en-ciel',
    },
    rainbow: 'Arc-en-ciel',
    game: 'Jeu de mémoire : répète la suite',
    sound: 'Son',
    seat: 'Pour les adultes : appuyer une seconde pour aller au siège du conducteur',
    lost: 'Pas de liaison avec la voiture ; reconnexion en cours',
    stars: '{done} sur {length}',
    starsBest: '{done} sur {length} ; record : {best}',
  },
});
