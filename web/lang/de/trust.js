/** German: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Fahrersitz',
    title: 'Diesem Auto vertrauen',
    first: '1. Hol das Zertifikat',
    why: 'Mit dem Zertifikat des Autos erkennt dein Browser das Auto und warnt nicht mehr.',
    vouches: 'Das Zertifikat gilt für Namen, die auf .local enden, für Adressen in Heimnetzen (10.x, 172.16.x bis 172.31.x, 192.168.x, 169.254.x), für dieses Gerät selbst (localhost, 127.x) und für die eigenen Namen und Adressen des Autos. Für andere Seiten und für E-Mail gilt es nicht. Ein Dieb der Speicherkarte könnte sich als jede dieser Adressen ausgeben, etwa als Seite deines Routers. Ist die Karte weg, entferne das Zertifikat.',
    download: 'Zertifikat holen',
    name: 'Name',
    fingerprint: 'SHA-256',
    second: '2. Installieren',
    undo: 'Um das rückgängig zu machen, entferne das Zertifikat an derselben Stelle.',
    third: '3. Prüfen, ob es klappt',
    check: 'Prüfen',
    open: 'Auto über https öffnen',

    asking: 'Warten auf das Auto …',
    silent: 'Das Auto antwortet nicht. Prüfe, ob dieses Gerät in seinem Netz ist, und lade diese Seite neu.',
    needless: 'Hier kann nur dieser Computer das Auto öffnen, ohne https. Ein Zertifikat ist nicht nötig.',
    looking: 'Wird geprüft …',
    trusted: 'Es hat geklappt: Dieser Browser vertraut dem Auto. (Das Ergebnis ist dasselbe, wenn du im Browser kürzlich trotz Warnung fortgefahren bist.)',
    strange: 'Noch nicht: Dieser Browser vertraut dem Auto nicht. Folge den Schritten oben, starte den Browser neu, öffne diese Seite wieder und prüfe noch einmal.',
    secure: 'Diese Seite wurde über https geladen. Hat der Browser nicht gewarnt, vertraut er dem Auto. Um sicherzugehen, öffne {address}.',

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
