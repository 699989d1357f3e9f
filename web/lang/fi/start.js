/** Finnish: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: 'Kuljettajan paikka', elsewhere: 'Tämä auto on jo käynnistetty.',
    title: 'Auton ensimmäinen käynnistys',
    asking: 'Kysytään autolta…',
    three: 'Kolme kysymystä',
    answered: 'Kysymyksiin on vastattu; auto käynnistyy.',
    starts: 'Auto käynnistyy',
    silent: 'Auto ei vastaa. Onko tämä laite sen Wi-Fissä?',
    board: 'Piirilevy: profiili, joka on lähimpänä auton johdotusta',
    name: 'Nimi: kirjaimia (A–Z), numeroita ja yhdysviivoja; siitä tulee NIMI.local',
    country: 'Maa: Wi-Fin kanavia varten',
    resistors: 'Piirroksen vastukset on juotettu moottorien johtoihin',
    go: 'Käynnistä auto',
    once: 'Kirjoita tämä muistiin; auto näyttää sen vain kerran',
    drive: 'Ajokoodi',
    grownUp: 'Aikuisen koodi',
    key: 'Auton oman Wi-Fin avain',
    keyFile: 'kortilla tiedostossa fpvcar-wifi-key.txt',
    soon: 'Auto käynnistyy minuutin kuluessa.',
    byName: 'Sen osoite',
    byAddress: 'Sen omassa Wi-Fissä',
    home: 'Siellä valikon ”Auton Wi-Fi” liittää auton kodin Wi-Fiin.',
  },
});
