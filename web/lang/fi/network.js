/** Finnish: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Aja',
    title: 'Wi-Fi',
    pageTitle: '{car}: Wi-Fi',
    unlockHint: 'Anna aikuisen koodi, niin voit vaihtaa auton Wi-Fi-verkon.',
    code: 'Aikuisen koodi',
    unlock: 'Avaa',
    near: 'Verkot auton lähellä',
    look: 'Etsi taas',
    own: 'Auton oma verkko',
    ownHint: 'Missä auto ei tunne verkkoa, se avaa tämän. Valokuvaa kuva nyt: puhelimen kamera liittyy sillä.',
    ownName: 'Verkko',
    key: 'Avain',
    address: 'Auton osoite',
    qr: 'Kuva, jolla puhelin liittyy auton omaan verkkoon',
    cancel: 'Peruuta',
    join: 'Liity',

    asking: 'Kysytään autolta…',
    silent: 'Auto ei vastaa. Se voi olla nyt toisessa verkossa: liity siihen tai auton omaan.',
    // Where the car is.
    phases: {
      absent: 'Autolla ei ole Wi-Fiä.',
      searching: 'Auto etsii verkkoja, jotka se tuntee. Puolen minuutin kuluttua se avaa omansa.',
      known: 'Auto on verkossa {ssid}.',
      opening: 'Auto avaa oman verkkonsa {own}.',
      own: 'Auto on omassa verkossaan {own}.',
      joining: 'Auto liittyy verkkoon {ssid}. Liity siihen tälläkin laitteella ja avaa {address}. Jos se ei onnistu, verkko {own} palaa noin {seconds} sekunnissa: silloin tämä sivu kertoo miksi.',
      failed: 'Auto ei ole missään verkossa. Se yrittää uudelleen puolen minuutin kuluttua.',
    },
    notJoined: 'Verkkoon {ssid} ei liitytty: {why}.',
    unheard: 'Verkkoja ei ole vielä löytynyt.',
    heard: 'Viimeisin haku: {ago}.',
    deaf: 'Auto ei voi etsiä, kun sen oma verkko on auki.',
    nothing: 'Lähellä ei ole verkkoa. Vie auto lähemmäs jotakin ja etsi taas.',
    strong: 'vahva', good: 'hyvä', weak: 'heikko',
    security: {open: 'ilman avainta', other: 'vaatii käyttäjänimen: ei tälle autolle'},
    joinTitle: 'Liity: {ssid}',
    joinHint: 'Auto lähtee nykyisestä verkostaan, ja tämä sivu kadottaa sen.',
    openHint: 'Siihen ei tarvita avainta: kuka tahansa lähellä saa katsella ja kokeilla koodeja.',
  },
});
