/** French: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: 'Siège du conducteur', elsewhere: 'Cette voiture est déjà démarrée.',
    title: 'Le premier démarrage de la voiture',
    asking: 'En attente de la voiture…',
    three: 'Trois questions',
    answered: 'Les réponses sont enregistrées ; la voiture démarre.',
    starts: 'La voiture démarre',
    silent: 'La voiture ne répond pas. Cet appareil est-il dans son Wi-Fi ?',
    board: 'Carte mère : le profil le plus proche du câblage de la voiture',
    name: 'Nom : lettres (A–Z), chiffres et traits d’union ; il devient NOM.local',
    country: 'Pays : pour les canaux du Wi-Fi',
    resistors: 'Les résistances du schéma sont soudées dans les fils des moteurs',
    go: 'Démarrer la voiture',
    once: 'Note ceci : la voiture ne le montre qu’une fois',
    drive: 'Code de conduite',
    grownUp: 'Code adulte',
    key: 'Clé de son propre Wi-Fi',
    keyFile: 'dans fpvcar-wifi-key.txt sur la carte',
    soon: 'La voiture démarre en moins d’une minute.',
    byName: 'Son adresse',
    byAddress: 'Dans son propre Wi-Fi',
    home: 'Là, « Wi-Fi de la voiture » dans le menu la connecte au Wi-Fi de la maison.',
  },
});
