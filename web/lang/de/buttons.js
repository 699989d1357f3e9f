/** German: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: 'Knöpfe',
    heading: 'Knöpfe von {car}',
    button: '{shape}, {colour}',
    colours: {red: 'rot', yellow: 'gelb', green: 'grün', blue: 'blau', purple: 'lila', white: 'weiß'},
    shapes: {circle: 'Kreis', triangle: 'Dreieck', square: 'Quadrat', star: 'Stern', heart: 'Herz', diamond: 'Raute'},
    modes: {
      show: 'Schau hin: Das Auto zeigt ein Muster',
      turn: 'Du bist dran: Mach das Muster nach',
      cheer: 'Richtig!',
      sad: 'Falscher Knopf. Das Spiel ist vorbei',
      rainbow: 'Regenbogen',
    },
    rainbow: 'Regenbogen',
    game: 'Memory: das Muster nachmachen',
    sound: 'Ton',
    seat: 'Für Erwachsene: eine Sekunde halten, um zum Fahrersitz zu kommen',
    lost: 'Keine Verbindung zum Auto; neuer Versuch läuft',
    stars: '{done} von {length}',
    starsBest: '{done} von {length}; Rekord: {best}',
  },
});
