/** French: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: 'Siège du conducteur', elsewhere: 'Ceci est une voiture. Les réglages des sites sont sur la passerelle.',
    title: 'Sites',
    asking: 'Chargement…',
    password: 'Mot de passe',
    unlock: 'Déverrouiller',
    until: 'Jusqu’à',
    undo: 'Annuler : {change}',
    off: 'Désactivé : tous les appareils accèdent à tous les sites',
    inForce: 'En vigueur',
    notYet: 'Pas encore en vigueur',
    locked: 'Il faut le mot de passe pour changer les accès.',
    silent: 'La passerelle ne répond pas.',
    modeUntil: '{mode} jusqu’à {time}',
    turn: '{name} : {mode} jusqu’à l’heure ci-dessus',
    modes: {everything: 'Tous les sites', sites: 'Sites autorisés', nothing: 'Aucun site'},
  },
});
