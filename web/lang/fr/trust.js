/** French: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Siège du conducteur',
    title: 'Faire confiance à cette voiture',
    first: '1. Obtiens le certificat',
    why: 'Avec le certificat de la voiture, ton navigateur la reconnaît et n’avertit plus.',
    vouches: 'Le certificat couvre les noms qui finissent par .local, les adresses des réseaux domestiques (10.x, 172.16.x à 172.31.x, 192.168.x, 169.254.x), cet appareil lui-même (localhost, 127.x), et les noms et adresses de la voiture. Il ne couvre aucun autre site ni le courrier électronique. Un voleur de la carte mémoire de la voiture pourrait se faire passer pour n’importe lequel d’entre eux, par exemple la page de ta box. Si la carte est perdue, supprime le certificat.',
    download: 'Obtenir le certificat',
    name: 'Nom',
    fingerprint: 'SHA-256',
    second: '2. Installe-le',
    undo: 'Pour annuler, supprime le certificat au même endroit.',
    third: '3. Vérifie que cela marche',
    check: 'Vérifier',
    open: 'Ouvrir la voiture par https',

    asking: 'En attente de la voiture…',
    silent: 'La voiture ne répond pas. Vérifie que cet appareil est sur son réseau, puis recharge cette page.',
    needless: 'Ici, seul cet ordinateur peut ouvrir la voiture, sans https. Aucun certificat n’est nécessaire.',
    looking: 'Vérification…',
    trusted: 'Cela marche : ce navigateur fait confiance à la voiture. (Le résultat est le même si tu as récemment continué malgré l’avertissement.)',
    strange: 'Pas encore : ce navigateur ne fait pas confiance à la voiture. Suis les étapes ci-dessus, redémarre le navigateur, rouvre cette page et vérifie encore.',
    secure: 'Cette page a été chargée par https. Si le navigateur n’a pas averti, il fait confiance à la voiture. Pour en être sûr, ouvre {address}.',

    // How each system is told.
    get: 'Obtiens le certificat.',
    ios: {
      get: 'Ouvre cette page dans Safari, obtiens le certificat et touche Autoriser.',
      install: 'Réglages, Général, VPN et gestion de l’appareil : touche le certificat, Installer.',
      trust: 'Réglages, Général, Informations, Réglages des certificats : active-le.',
    },
    android: {
      install: 'Paramètres, Sécurité et confidentialité, Autres paramètres de sécurité, Chiffrement et identifiants, Installer un certificat, Certificat CA, Installer quand même : choisis le fichier. (Cherche « certificat CA » dans les paramètres si les tiens sont dans un autre ordre.)',
      firefox: 'Firefox seulement : Paramètres, À propos de Firefox, touche le logo cinq fois ; puis Paramètres, Secret Settings, utiliser les certificats CA tiers.',
    },
    windows: {
      get: 'Obtiens le certificat et ouvre le fichier.',
      install: 'Installer un certificat, Utilisateur actuel, Placer tous les certificats dans le magasin suivant, Parcourir : Autorités de certification racines de confiance.',
      finish: 'Terminer, et réponds Oui à l’avertissement.',
    },
    macos: {
      get: 'Obtiens le certificat et ouvre le fichier : Trousseaux d’accès l’ajoute à « session ».',
      trust: 'Dans Trousseaux d’accès, ouvre-le, puis Se fier, « Lors de l’utilisation de ce certificat » : Toujours approuver.',
      close: 'Ferme la fenêtre et entre ton mot de passe.',
    },
    linux: {
      chrome: 'Chrome, Chromium : Paramètres, Confidentialité et sécurité, Sécurité, Gérer les certificats, Autorités (ou Personnalisé, Installés par vous), Importer : fais-lui confiance pour les sites web.',
      firefox: 'Firefox : Paramètres, Vie privée et sécurité, Afficher les certificats, Autorités, Importer : fais-lui confiance pour identifier des sites web.',
    },
  },
});
