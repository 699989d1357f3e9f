/** German: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Fahren',
    title: 'WLAN',
    pageTitle: '{car}: WLAN',
    unlockHint: 'Gib den Code für Erwachsene ein, um das WLAN des Autos zu ändern.',
    code: 'Code für Erwachsene',
    unlock: 'Freischalten',
    near: 'Netze beim Auto',
    look: 'Neu suchen',
    own: 'Das eigene Netz des Autos',
    ownHint: 'Wo das Auto kein Netz kennt, öffnet es dieses. Fotografiere das Bild jetzt: Die Kamera eines Handys verbindet sich damit.',
    ownName: 'Netz',
    key: 'Schlüssel',
    address: 'Das Auto ist unter',
    qr: 'Ein Bild, mit dem sich ein Handy mit dem Netz des Autos verbindet',
    cancel: 'Abbrechen',
    join: 'Verbinden',

    asking: 'Fragt das Auto …',
    silent: 'Das Auto antwortet nicht. Vielleicht ist es jetzt in einem anderen Netz: Geh in jenes, oder in das des Autos.',
    // Where the car is.
    phases: {
      absent: 'Das Auto hat kein WLAN.',
      searching: 'Das Auto sucht Netze, die es kennt. Nach einer halben Minute öffnet es sein eigenes.',
      known: 'Das Auto ist im Netz {ssid}.',
      opening: 'Das Auto öffnet sein eigenes Netz, {own}.',
      own: 'Das Auto ist in seinem eigenen Netz, {own}.',
      joining: 'Das Auto geht in {ssid}. Geh mit diesem Gerät auch hinein und öffne {address}. Klappt das nicht, ist das Netz {own} in etwa {seconds} s zurück: Dann sagt diese Seite, warum.',
      failed: 'Das Auto ist in keinem Netz. Es versucht es in einer halben Minute wieder.',
    },
    notJoined: '{ssid} ging nicht: {why}.',
    unheard: 'Noch keine Netze gefunden.',
    heard: 'Letzte Suche: {ago}.',
    deaf: 'Solange sein eigenes Netz offen ist, kann das Auto nicht suchen.',
    nothing: 'Kein Netz ist nah. Bring das Auto näher an eines und such noch einmal.',
    strong: 'stark', good: 'gut', weak: 'schwach',
    security: {open: 'ohne Schlüssel', other: 'braucht einen Benutzernamen: nichts für dieses Auto'},
    joinTitle: 'Mit {ssid} verbinden',
    joinHint: 'Das Auto verlässt das Netz, in dem es ist, und diese Seite verliert es.',
    openHint: 'Niemand braucht einen Schlüssel dafür: Wer in der Nähe ist, darf zusehen und Codes probieren.',
  },
});
