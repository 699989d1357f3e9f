/** English: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: 'Buttons',
    heading: 'Buttons of {car}',
    button: '{colour} {shape}',
    colours: {red: 'red', yellow: 'yellow', green: 'green', blue: 'blue', purple: 'purple', white: 'white'},
    shapes: {circle: 'circle', triangle: 'triangle', square: 'square', star: 'star', heart: 'heart', diamond: 'diamond'},
    modes: {
      show: 'Watch: the car shows a pattern',
      turn: 'Your turn: repeat the pattern',
      cheer: 'Right!',
      sad: 'Wrong button. The game is over',
      rainbow: 'Rainbow',
    },
    rainbow: 'Rainbow',
    game: 'Memory game: repeat the pattern',
    sound: 'Sound',
    seat: 'For grown-ups: hold for a second to go to the driver’s seat',
    lost: 'No link to the car; reconnecting',
    stars: '{done} of {length}',
    starsBest: '{done} of {length}; the best was {best}',
  },
});
