/** Finnish: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Kuljettajan paikka',
    title: 'Luota tähän autoon',
    first: '1. Hae varmenne',
    why: 'Auton varmenteen avulla selaimesi tunnistaa auton eikä enää varoita.',
    vouches: 'Varmenne kattaa nimet, joiden lopussa on .local, kotiverkkojen osoitteet (10.x, 172.16.x–172.31.x, 192.168.x, 169.254.x), tämän laitteen itsensä (localhost, 127.x) sekä auton omat nimet ja osoitteet. Muita sivustoja tai sähköpostia se ei kata. Auton muistikortin varas voisi esiintyä minä tahansa näistä, esimerkiksi reitittimesi sivuna. Jos kortti katoaa, poista varmenne.',
    download: 'Hae varmenne',
    name: 'Nimi',
    fingerprint: 'SHA-256',
    second: '2. Asenna se',
    undo: 'Jos haluat perua tämän, poista varmenne samasta paikasta.',
    third: '3. Tarkista, että se toimii',
    check: 'Tarkista',
    open: 'Avaa auto https:llä',

    asking: 'Kysytään autolta…',
    silent: 'Auto ei vastaa. Tarkista, että tämä laite on sen verkossa, ja lataa sivu uudelleen.',
    needless: 'Auton voi avata vain tällä tietokoneella, ilman https:ää. Varmennetta ei tarvita.',
    looking: 'Tarkistetaan…',
    trusted: 'Se onnistui: tämä selain luottaa autoon. (Tulos on sama, jos jatkoit selaimessa hiljattain varoituksesta huolimatta.)',
    strange: 'Ei vielä: tämä selain ei luota autoon. Tee yllä olevat vaiheet, käynnistä selain uudelleen, avaa tämä sivu ja tarkista vielä kerran.',
    secure: 'Tämä sivu ladattiin https:llä. Jos selain ei varoittanut, se luottaa autoon. Voit varmistua asiasta avaamalla {address}.',

    // How each system is told.
    get: 'Hae varmenne.',
    ios: {
      get: 'Avaa tämä sivu Safarissa, hae varmenne ja paina Salli.',
      install: 'Asetukset, Yleiset, VPN ja laitehallinta: paina varmennetta, Asenna.',
      trust: 'Asetukset, Yleiset, Tietoja, Varmenteiden luottamusasetukset: kytke se päälle.',
    },
    android: {
      install: 'Asetukset, Turvallisuus ja yksityisyys, Lisää turvallisuusasetuksia, Salaus ja kirjautumistiedot, Asenna varmenne, CA-varmenne, Asenna silti: valitse tiedosto. (Etsi asetuksista ”CA-varmenne”, jos järjestys on toinen.)',
      firefox: 'Vain Firefox: Asetukset, Tietoja Firefoxista, paina logoa viisi kertaa; sitten Asetukset, Secret Settings, kolmannen osapuolen CA-varmenteet käyttöön.',
    },
    windows: {
      get: 'Hae varmenne ja avaa tiedosto.',
      install: 'Asenna varmenne, Nykyinen käyttäjä, Sijoita kaikki varmenteet seuraavaan säilöön, Selaa: Luotetut varmenteiden päämyöntäjät.',
      finish: 'Valmis, ja vastaa varoitukseen Kyllä.',
    },
    macos: {
      get: 'Hae varmenne ja avaa tiedosto: Avainnipun käyttö lisää sen kirjautumisnippuun.',
      trust: 'Avaa se Avainnipun käytössä, sitten Luota, ”Käytettäessä tätä varmennetta”: Luota aina.',
      close: 'Sulje ikkuna ja anna salasanasi.',
    },
    linux: {
      chrome: 'Chrome, Chromium: Asetukset, Tietosuoja ja turvallisuus, Turvallisuus, Ylläpidä varmenteita, Myöntäjät (tai Muokattu, Itse asennetut), Tuo: luota siihen verkkosivustoilla.',
      firefox: 'Firefox: Asetukset, Yksityisyys ja turvallisuus, Näytä varmenteet, Varmentajat, Tuo: luota siihen verkkosivustojen tunnistamisessa.',
    },
  },
});
