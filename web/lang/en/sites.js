/** English: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: 'Driver’s seat', elsewhere: 'This is a car. The switches of the sites are on the gateway.',
    title: 'Sites',
    asking: 'Loading…',
    password: 'Password',
    unlock: 'Unlock',
    until: 'Until',
    undo: 'Undo: {change}',
    off: 'Off: all clients reach all sites',
    inForce: 'In force',
    notYet: 'Not yet in force',
    locked: 'The switches need the password.',
    silent: 'The gateway does not answer.',
    modeUntil: '{mode} until {time}',
    turn: '{name}: {mode} until the time above',
    modes: {everything: 'Every site', sites: 'Allowed sites', nothing: 'No site'},
  },
});
