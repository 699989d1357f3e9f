/** German: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Fahrersitz',
    title: 'WLAN',
    pageTitle: '{car}: WLAN',
    unlockHint: 'Gib den Code für Erwachsene ein, um das WLAN des Autos zu ändern.',
    code: 'Code für Erwachsene',
    unlock: 'Freischalten',
    near: 'Netze beim Auto',
    look: 'Neu suchen',
    own: 'Das eigene Netz des Autos',
    ownHint: 'Das Auto öffnet dieses Netz, wenn kein bekanntes in Reichweite ist. Fotografiere den Code jetzt: Scanne ihn, um dich mit diesem Netz zu verbinden.',
    ownName: 'Netz',
    key: 'Schlüssel',
    address: 'Adresse des Autos',
    qr: 'QR-Code für das eigene Netz des Autos',
    cancel: 'Abbrechen',
    join: 'Verbinden',

    asking: 'Warten auf das Auto …',
    silent: 'Das Auto antwortet nicht. Vielleicht ist es jetzt in einem anderen Netz: Verbinde dich mit diesem oder mit dem eigenen Netz des Autos.',
    // Where the car is.
    phases: {
      absent: 'Das Auto hat kein WLAN.',
      searching: 'Das Auto sucht bekannte Netze. Nach einer halben Minute öffnet es sein eigenes.',
      known: 'Das Auto ist im Netz {ssid}.',
      opening: 'Das Auto öffnet sein eigenes Netz, {own}.',
      own: 'Das Auto ist in seinem eigenen Netz, {own}.',
      joining: 'Das Auto verbindet sich mit {ssid}. Verbinde auch dieses Gerät damit und öffne {address}. Klappt es nicht, ist das Netz {own} in etwa {seconds} s zurück, und diese Seite zeigt den Grund.',
      failed: 'Das Auto ist in keinem Netz. Es versucht es in einer halben Minute wieder.',
    },
    absent: '{why}.',
    notJoined: 'Das Auto konnte sich nicht mit {ssid} verbinden: {why}.',
    unheard: 'Noch keine Netze gefunden.',
    heard: 'Letzte Suche: {ago}.',
    deaf: 'Solange sein eigenes Netz offen ist, kann das Auto nicht suchen.',
    nothing: 'Kein Netz in Reichweite. Bring das Auto näher an eines und such noch einmal.',
    strong: 'stark', good: 'gut', weak: 'schwach',
    security: {open: 'ohne Schlüssel', other: 'braucht einen Benutzernamen: nicht unterstützt'},
    other: 'Anderes Netz',
    joinTitle: 'Mit {ssid} verbinden',
    otherTitle: 'Mit einem anderen Netz verbinden',
    ssid: 'Name des Netzes',
    otherHint: 'Versteckte Netze stehen nicht in der Liste: Gib den Namen genau ein, und lass den Schlüssel leer, wenn das Netz keinen hat.',
    joinHint: 'Das Auto verlässt sein jetziges Netz, und diese Seite verliert die Verbindung.',
    openHint: 'Dieses Netz hat keinen Schlüssel: Jeder in der Nähe kann zusehen und Codes ausprobieren.',
  },
});
