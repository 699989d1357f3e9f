/** French: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'La voiture',
    title: 'Se fier à cette voiture',
    first: '1. Obtenez le certificat',
    why: 'La voiture se porte garante d’elle-même : avec son certificat, votre navigateur la reconnaît et n’avertit plus.',
    vouches: 'Ce qu’il garantit : les pages web dont le nom finit par .local, les adresses des réseaux domestiques (10.x, 172.16.x à 172.31.x, 192.168.x, 169.254.x), cet appareil lui-même (localhost, 127.x), et les noms et adresses de la voiture. Il ne garantit aucun autre site ni le courrier électronique. Un voleur de la carte mémoire de la voiture pourrait se faire passer pour n’importe lequel d’entre eux, par exemple la page de votre box : si la carte est perdue, supprimez le certificat.',
    download: 'Obtenir le certificat',
    name: 'Nom',
    fingerprint: 'SHA-256',
    second: '2. Installez-le',
    undo: 'Pour revenir en arrière, retirez le certificat au même endroit.',
    third: '3. Vérifiez que cela marche',
    check: 'Vérifier',
    open: 'Ouvrir la voiture par https',

    asking: 'Question à la voiture…',
    silent: 'La voiture ne répond pas. Cet appareil est-il dans son réseau ? Alors rechargez cette page.',
    needless: 'Ici la voiture n’est ouverte qu’à cet ordinateur, sans https : il n’y a rien à valider.',
    looking: 'Vérification…',
    trusted: 'Cela a marché : ce navigateur se fie à la voiture. (Si vous lui avez dit récemment de continuer malgré l’avertissement, il dirait la même chose.)',
    strange: 'Pas encore : ce navigateur ne se fie pas à la voiture. Suivez les étapes ci-dessus, fermez le navigateur, rouvrez cette page et voyez encore.',
    secure: 'Cette page est venue par https. Si le navigateur n’a pas averti, il se fie à la voiture ; pour y voir de plus près, ouvrez {address}.',

    // How each system is told.
    get: 'Obtenez le certificat.',
    ios: {
      get: 'Ouvrez cette page dans Safari, obtenez le certificat et touchez Autoriser.',
      install: 'Réglages, Général, VPN et gestion de l’appareil : touchez le certificat, Installer.',
      trust: 'Réglages, Général, Informations, Réglages des certificats : activez-le.',
    },
    android: {
      install: 'Paramètres, Sécurité et confidentialité, Autres paramètres de sécurité, Chiffrement et identifiants, Installer un certificat, Certificat CA, Installer quand même : choisissez le fichier. (Cherchez « certificat CA » dans les paramètres si les vôtres sont dans un autre ordre.)',
      firefox: 'Firefox seulement : Paramètres, À propos de Firefox, touchez le logo cinq fois ; puis Paramètres, Secret Settings, utiliser les certificats CA tiers.',
    },
    windows: {
      get: 'Obtenez le certificat et ouvrez le fichier.',
      install: 'Installer un certificat, Utilisateur actuel, Placer tous les certificats dans le magasin suivant, Parcourir : Autorités de certification racines de confiance.',
      finish: 'Terminer, et répondez Oui à l’avertissement.',
    },
    macos: {
      get: 'Obtenez le certificat et ouvrez le fichier : Trousseaux d’accès l’ajoute à « session ».',
      trust: 'Dans Trousseaux d’accès, ouvrez-le, puis Se fier, « Lors de l’utilisation de ce certificat » : Toujours approuver.',
      close: 'Fermez la fenêtre et entrez votre mot de passe.',
    },
    linux: {
      chrome: 'Chrome, Chromium : Paramètres, Confidentialité et sécurité, Sécurité, Gérer les certificats, Autorités (ou Personnalisé, Installés par vous), Importer : faites-lui confiance pour les sites web.',
      firefox: 'Firefox : Paramètres, Vie privée et sécurité, Afficher les certificats, Autorités, Importer : faites-lui confiance pour identifier des sites web.',
    },
  },
});
