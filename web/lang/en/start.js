/** English: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: 'Driver’s seat', elsewhere: 'This car has been started already.',
    title: 'The car’s first start',
    asking: 'Waiting for the car…',
    three: 'Three questions',
    answered: 'The questions are answered. The car is starting.',
    starts: 'The car is starting',
    silent: 'The car does not answer. Is this device on its Wi-Fi?',
    board: 'Board: the profile closest to your wiring',
    name: 'Name: letters, digits and hyphens; the car’s address will be NAME.local',
    country: 'Country: sets the channels of the Wi-Fi',
    resistors: 'The resistors of the drawing are soldered into the motors’ leads',
    go: 'Start the car',
    once: 'Write this down: the car shows it only once',
    drive: 'Drive code',
    grownUp: 'Grown-up code',
    key: 'Key of its own Wi-Fi',
    keyFile: 'in fpvcar-wifi-key.txt on the card',
    soon: 'The car starts within a minute.',
    byName: 'Its address',
    byAddress: 'In its own Wi-Fi',
    home: 'There, use “Car Wi-Fi” in the menu to join your Wi-Fi at home.',
  },
});
