/** German: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: 'Fahrersitz', elsewhere: 'Dieses Auto ist schon gestartet.',
    title: 'Der erste Start des Autos',
    asking: 'Warten auf das Auto …',
    three: 'Drei Fragen',
    answered: 'Die Fragen sind beantwortet; das Auto startet.',
    starts: 'Das Auto startet',
    silent: 'Das Auto antwortet nicht. Ist dieses Gerät in seinem WLAN?',
    board: 'Platine: das Profil, das zur Verdrahtung des Autos passt',
    name: 'Name: Buchstaben (A–Z), Ziffern und Bindestriche; daraus wird NAME.local',
    country: 'Land: für die Kanäle des WLANs',
    resistors: 'Die Widerstände der Zeichnung sind in die Motorleitungen gelötet',
    go: 'Auto starten',
    once: 'Schreib dir das auf; das Auto zeigt es nur einmal',
    drive: 'Fahrcode',
    grownUp: 'Code für Erwachsene',
    key: 'Schlüssel seines eigenen WLANs',
    keyFile: 'in fpvcar-wifi-key.txt auf der Karte',
    soon: 'Das Auto startet innerhalb einer Minute.',
    byName: 'Seine Adresse',
    byAddress: 'In seinem eigenen WLAN',
    home: 'Dort verbindest du es im Menü unter „WLAN des Autos“ mit dem WLAN zu Hause.',
  },
});
