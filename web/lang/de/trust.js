/** German: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Zum Auto',
    title: 'Diesem Auto vertrauen',
    first: '1. Hol das Zertifikat',
    why: 'Das Auto bürgt für sich selbst: Mit seinem Zertifikat erkennt dein Browser es wieder und warnt nicht mehr.',
    vouches: 'Wofür es bürgt: für Webseiten, deren Name auf .local endet, für Adressen in Heimnetzen (10.x, 172.16.x bis 172.31.x, 192.168.x, 169.254.x), für dieses Gerät selbst (localhost, 127.x) und für die eigenen Namen und Adressen des Autos. Für andere Seiten und für E-Mail bürgt es nicht. Ein Dieb der Speicherkarte könnte sich als jede davon ausgeben, etwa als Seite deines Routers: Ist die Karte weg, entferne das Zertifikat.',
    download: 'Zertifikat holen',
    name: 'Name',
    fingerprint: 'SHA-256',
    second: '2. Installieren',
    undo: 'Um es zurückzunehmen, entferne das Zertifikat an derselben Stelle.',
    third: '3. Prüfen, ob es klappt',
    check: 'Prüfen',
    open: 'Auto über https öffnen',

    asking: 'Fragt das Auto …',
    silent: 'Das Auto antwortet nicht. Ist dieses Gerät in seinem Netz? Dann lade diese Seite neu.',
    needless: 'Hier ist das Auto nur für diesen Computer offen, ohne https: Es gibt nichts zu vertrauen.',
    looking: 'Sieht nach …',
    trusted: 'Es hat geklappt: Dieser Browser vertraut dem Auto. (Wenn du ihm kürzlich gesagt hast, er soll trotz Warnung weitergehen, sagt er dasselbe.)',
    strange: 'Noch nicht: Dieser Browser vertraut dem Auto nicht. Mach die Schritte oben, schließ den Browser, öffne diese Seite wieder und sieh noch einmal nach.',
    secure: 'Diese Seite kam über https. Wenn der Browser nicht gewarnt hat, vertraut er dem Auto; um genauer nachzusehen, öffne {address}.',

    // How each system is told.
    get: 'Hol das Zertifikat.',
    ios: {
      get: 'Öffne diese Seite in Safari, hol das Zertifikat und tippe auf „Zulassen“.',
      install: 'Einstellungen, Allgemein, VPN und Geräteverwaltung: tippe auf das Zertifikat, Installieren.',
      trust: 'Einstellungen, Allgemein, Info, Zertifikatsvertrauenseinstellungen: schalte es ein.',
    },
    android: {
      install: 'Einstellungen, Sicherheit und Datenschutz, Weitere Sicherheitseinstellungen, Verschlüsselung und Anmeldedaten, Zertifikat installieren, CA-Zertifikat, Trotzdem installieren: wähle die Datei. (Suche in den Einstellungen nach „CA-Zertifikat“, wenn deine anders geordnet sind.)',
      firefox: 'Nur Firefox: Einstellungen, Über Firefox, tippe fünfmal auf das Logo; dann Einstellungen, Secret Settings, CA-Zertifikate von Drittanbietern verwenden.',
    },
    windows: {
      get: 'Hol das Zertifikat und öffne die Datei.',
      install: 'Zertifikat installieren, Aktueller Benutzer, Alle Zertifikate in folgendem Speicher speichern, Durchsuchen: Vertrauenswürdige Stammzertifizierungsstellen.',
      finish: 'Fertig stellen, und beantworte die Warnung mit „Ja“.',
    },
    macos: {
      get: 'Hol das Zertifikat und öffne die Datei: Die Schlüsselbundverwaltung legt es unter „Anmeldung“ ab.',
      trust: 'Öffne es in der Schlüsselbundverwaltung, dann Vertrauen, „Bei Verwendung dieses Zertifikats“: Immer vertrauen.',
      close: 'Schließ das Fenster und gib dein Passwort ein.',
    },
    linux: {
      chrome: 'Chrome, Chromium: Einstellungen, Datenschutz und Sicherheit, Sicherheit, Zertifikate verwalten, Zertifizierungsstellen (oder Benutzerdefiniert, Von dir installiert), Importieren: vertraue ihm für Websites.',
      firefox: 'Firefox: Einstellungen, Datenschutz & Sicherheit, Zertifikate anzeigen, Zertifizierungsstellen, Importieren: vertraue ihm, um Websites zu identifizieren.',
    },
  },
});
