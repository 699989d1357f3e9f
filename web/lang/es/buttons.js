/** Spanish: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: 'Botones',
    heading: 'Botones de {car}',
    button: '{shape} de color {colour}',
    colours: {red: 'rojo', yellow: 'amarillo', green: 'verde', blue: 'azul', purple: 'morado', white: 'blanco'},
    shapes: {circle: 'círculo', triangle: 'triángulo', square: 'cuadrado', star: 'estrella', heart: 'corazón', diamond: 'rombo'},
    modes: {
      show: 'Mira: el coche muestra una secuencia',
      turn: 'Te toca: repite la secuencia',
      cheer: '¡Muy bien!',
      sad: 'Botón equivocado. Fin del juego',
      rainbow: 'Arcoíris',
    },
    rainbow: 'Arcoíris',
    game: 'Juego de memoria: repite la secuencia',
    sound: 'Sonido',
    seat: 'Para adultos: mantén pulsado un segundo para ir al asiento del conductor',
    lost: 'Sin conexión con el coche; reconectando',
    stars: '{done} de {length}',
    starsBest: '{done} de {length}; el récord es {best}',
  },
});
