/** French: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Conduire',
    title: 'Wi-Fi',
    pageTitle: '{car} : Wi-Fi',
    unlockHint: 'Entrez le code adulte pour changer le Wi-Fi de la voiture.',
    code: 'Code adulte',
    unlock: 'Déverrouiller',
    near: 'Réseaux près de la voiture',
    look: 'Chercher encore',
    own: 'Le réseau de la voiture',
    ownHint: 'Là où la voiture ne connaît aucun réseau, elle ouvre celui-ci. Photographiez l’image maintenant : l’appareil photo d’un téléphone s’y connecte.',
    ownName: 'Réseau',
    key: 'Clé',
    address: 'La voiture est à',
    qr: 'Une image par laquelle un téléphone rejoint le réseau de la voiture',
    cancel: 'Annuler',
    join: 'Rejoindre',

    asking: 'Question à la voiture…',
    silent: 'La voiture ne répond pas. Elle est peut-être dans un autre réseau : rejoignez-le, ou celui de la voiture.',
    // Where the car is.
    phases: {
      absent: 'La voiture n’a pas de Wi-Fi.',
      searching: 'La voiture cherche les réseaux qu’elle connaît. Après une demi-minute, elle ouvre le sien.',
      known: 'La voiture est dans le réseau {ssid}.',
      opening: 'La voiture ouvre son propre réseau, {own}.',
      own: 'La voiture est dans son propre réseau, {own}.',
      joining: 'La voiture rejoint {ssid}. Rejoignez-le aussi avec cet appareil et ouvrez {address}. Si cela échoue, le réseau {own} revient dans environ {seconds} s : alors cette page dit pourquoi.',
      failed: 'La voiture n’est dans aucun réseau. Elle réessaie dans une demi-minute.',
    },
    notJoined: '{ssid} n’a pas été rejoint : {why}.',
    unheard: 'Aucun réseau trouvé pour l’instant.',
    heard: 'Dernière recherche : {ago}.',
    deaf: 'La voiture ne peut pas chercher tant que son propre réseau est ouvert.',
    nothing: 'Aucun réseau n’est proche. Approchez la voiture d’un réseau et cherchez encore.',
    strong: 'fort', good: 'bon', weak: 'faible',
    security: {open: 'sans clé', other: 'demande un nom d’utilisateur : pas pour cette voiture'},
    joinTitle: 'Rejoindre {ssid}',
    joinHint: 'La voiture quitte le réseau où elle est, et cette page la perd.',
    openHint: 'Personne n’a besoin de clé : qui est à portée peut regarder, et essayer des codes.',
  },
});
