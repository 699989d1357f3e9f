/** Finnish: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: 'Kuljettajan paikka', elsewhere: 'Tämä on auto. Sivustojen kytkimet ovat yhdyskäytävässä.',
    title: 'Sivustot',
    asking: 'Kysytään…',
    password: 'Salasana',
    unlock: 'Avaa lukitus',
    until: 'Päättyy',
    undo: 'Kumoa: {change}',
    off: 'Pois päältä: kaikki laitteet pääsevät kaikille sivustoille',
    inForce: 'Voimassa',
    notYet: 'Ei vielä voimassa',
    locked: 'Valinnat vaativat salasanan.',
    silent: 'Yhdyskäytävä ei vastaa.',
    modeUntil: '{mode}, {time} asti',
    turn: '{name}: {mode} yllä olevaan kellonaikaan asti',
    modes: {everything: 'Kaikki sivustot', sites: 'Sallitut sivustot', nothing: 'Ei sivustoja'},
  },
});
