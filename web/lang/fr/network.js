/** French: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Siège du conducteur',
    title: 'Wi-Fi',
    pageTitle: '{car} : Wi-Fi',
    unlockHint: 'Entre le code adulte pour changer le Wi-Fi de la voiture.',
    code: 'Code adulte',
    unlock: 'Déverrouiller',
    near: 'Réseaux près de la voiture',
    look: 'Chercher encore',
    own: 'Le réseau de la voiture',
    ownHint: 'La voiture ouvre ce réseau quand aucun réseau connu n’est à portée. Photographie le code maintenant : scanne-le pour rejoindre ce réseau.',
    ownName: 'Réseau',
    key: 'Clé',
    address: 'Adresse de la voiture',
    qr: 'QR code pour rejoindre le réseau de la voiture',
    cancel: 'Annuler',
    join: 'Rejoindre',

    asking: 'En attente de la voiture…',
    silent: 'La voiture ne répond pas. Elle est peut-être sur un autre réseau : rejoins-le, ou rejoins celui de la voiture.',
    // Where the car is.
    phases: {
      absent: 'La voiture n’a pas de Wi-Fi.',
      searching: 'La voiture cherche des réseaux connus. Après une demi-minute, elle ouvre le sien.',
      known: 'La voiture est sur le réseau {ssid}.',
      opening: 'La voiture ouvre son propre réseau, {own}.',
      own: 'La voiture est sur son propre réseau, {own}.',
      joining: 'La voiture rejoint {ssid}. Rejoins-le aussi avec cet appareil et ouvre {address}. Si cela échoue, le réseau {own} revient dans environ {seconds} s, et cette page en donne la raison.',
      failed: 'La voiture n’est sur aucun réseau. Elle réessaiera dans une demi-minute.',
    },
    absent: '{why}.',
    notJoined: 'La voiture n’a pas pu rejoindre {ssid} : {why}.',
    unheard: 'Aucun réseau trouvé pour l’instant.',
    heard: 'Dernière recherche : {ago}.',
    deaf: 'La voiture ne peut pas chercher tant que son propre réseau est ouvert.',
    nothing: 'Aucun réseau à portée. Approche la voiture d’un réseau et cherche encore.',
    strong: 'fort', good: 'bon', weak: 'faible',
    security: {open: 'sans clé', other: 'demande un nom d’utilisateur : non pris en charge'},
    other: 'Autre réseau',
    joinTitle: 'Rejoindre {ssid}',
    otherTitle: 'Rejoindre un autre réseau',
    ssid: 'Nom du réseau',
    otherHint: 'Les réseaux cachés ne sont pas dans la liste : tape le nom exact, et laisse la clé vide si le réseau n’en a pas.',
    joinHint: 'La voiture quitte son réseau actuel, et cette page perd la liaison.',
    openHint: 'Ce réseau n’a pas de clé : toute personne à portée peut regarder, et essayer des codes.',
  },
});
