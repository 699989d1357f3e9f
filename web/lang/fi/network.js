/** Finnish: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Kuljettajan paikka',
    title: 'Wi-Fi',
    pageTitle: '{car}: Wi-Fi',
    unlockHint: 'Anna aikuisen koodi, niin voit vaihtaa auton Wi-Fi-verkon.',
    code: 'Aikuisen koodi',
    unlock: 'Avaa',
    near: 'Verkot auton lähellä',
    look: 'Etsi uudelleen',
    own: 'Auton oma verkko',
    ownHint: 'Auto avaa tämän verkon, kun tuttua verkkoa ei ole lähellä. Ota koodista kuva nyt: skannaamalla sen liityt tähän verkkoon.',
    ownName: 'Verkko',
    key: 'Avain',
    address: 'Auton osoite',
    qr: 'QR-koodi, jolla liitytään auton omaan verkkoon',
    cancel: 'Peruuta',
    join: 'Liity',

    asking: 'Kysytään autolta…',
    silent: 'Auto ei vastaa. Se voi olla nyt toisessa verkossa: liity siihen tai auton omaan.',
    // Where the car is.
    phases: {
      absent: 'Autolla ei ole Wi-Fiä.',
      searching: 'Auto etsii tuttuja verkkoja. Puolen minuutin kuluttua se avaa omansa.',
      known: 'Auto on verkossa {ssid}.',
      opening: 'Auto avaa oman verkkonsa {own}.',
      own: 'Auto on omassa verkossaan {own}.',
      joining: 'Auto liittyy verkkoon {ssid}. Liity siihen tälläkin laitteella ja avaa {address}. Jos se ei onnistu, verkko {own} palaa noin {seconds} sekunnissa ja tämä sivu kertoo syyn.',
      failed: 'Auto ei ole missään verkossa. Se yrittää uudelleen puolen minuutin kuluttua.',
    },
    absent: '{why}.',
    notJoined: 'Auto ei voinut liittyä verkkoon {ssid}: {why}.',
    unheard: 'Verkkoja ei ole vielä löytynyt.',
    heard: 'Viimeisin haku: {ago}.',
    deaf: 'Auto ei voi etsiä, kun sen oma verkko on auki.',
    nothing: 'Lähellä ei ole verkkoa. Vie auto lähemmäs verkkoa ja etsi uudelleen.',
    strong: 'vahva', good: 'hyvä', weak: 'heikko',
    security: {open: 'ilman avainta', other: 'vaatii käyttäjänimen: ei tuettu'},
    other: 'Muu verkko',
    joinTitle: 'Liity: {ssid}',
    otherTitle: 'Liity muuhun verkkoon',
    ssid: 'Verkon nimi',
    otherHint: 'Piilotetut verkot eivät näy luettelossa: kirjoita nimi tarkasti ja jätä avain tyhjäksi, jos verkossa ei ole avainta.',
    joinHint: 'Auto lähtee nykyisestä verkostaan, ja tämän sivun yhteys katkeaa.',
    openHint: 'Tässä verkossa ei ole avainta: kuka tahansa lähellä voi katsella ja kokeilla koodeja.',
  },
});
