/** German: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: 'Fahrersitz', elsewhere: 'Das ist ein Auto. Die Schalter der Websites sind auf dem Gateway.',
    title: 'Websites',
    asking: 'Wird abgefragt …',
    password: 'Passwort',
    unlock: 'Entsperren',
    until: 'Bis',
    undo: 'Rückgängig: {change}',
    off: 'Aus: Alle Geräte erreichen alle Websites',
    inForce: 'In Kraft',
    notYet: 'Noch nicht in Kraft',
    locked: 'Für die Schalter ist das Passwort nötig.',
    silent: 'Das Gateway antwortet nicht.',
    modeUntil: '{mode} bis {time}',
    turn: '{name}: {mode} bis zur Uhrzeit oben',
    modes: {everything: 'Alle Websites', sites: 'Erlaubte Websites', nothing: 'Keine Website'},
  },
});
