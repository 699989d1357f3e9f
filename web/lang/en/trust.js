/** English: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Driver’s seat',
    title: 'Trust this car',
    first: '1. Get the certificate',
    why: 'With the car’s certificate your browser recognizes the car and no longer warns.',
    vouches: 'The certificate covers names that end in .local, addresses in home networks (10.x, 172.16.x to 172.31.x, 192.168.x, 169.254.x), this device itself (localhost, 127.x), and the car’s own names and addresses. It covers no other site and no e-mail. A thief of the car’s memory card could pose as any of these, for example as your router’s page. If the card is lost, remove the certificate.',
    download: 'Get the certificate',
    name: 'Name',
    fingerprint: 'SHA-256',
    second: '2. Install it',
    undo: 'To undo this, remove the certificate in the same place.',
    third: '3. Check that it works',
    check: 'Check',
    open: 'Open the car over https',

    asking: 'Waiting for the car…',
    silent: 'The car does not answer. Check that this device is on its network, then reload this page.',
    needless: 'Here only this computer can open the car, without https. No certificate is needed.',
    looking: 'Checking…',
    trusted: 'It works: this browser trusts the car. (The result is the same if you recently told the browser to proceed despite its warning.)',
    strange: 'Not yet: this browser does not trust the car. Follow the steps above, restart the browser, open this page again and check once more.',
    secure: 'This page was loaded over https. If the browser did not warn, it trusts the car. To be sure, open {address}.',

    // How each system is told.
    get: 'Get the certificate.',
    ios: {
      get: 'Open this page in Safari, get the certificate, and tap Allow.',
      install: 'Settings, General, VPN & Device Management: tap the certificate, Install.',
      trust: 'Settings, General, About, Certificate Trust Settings: switch it on.',
    },
    android: {
      install: 'Settings, Security & privacy, More security settings, Encryption & credentials, Install a certificate, CA certificate, Install anyway: choose the file. (Search the settings for “CA certificate” if yours are in another order.)',
      firefox: 'Firefox only: Settings, About Firefox, tap the logo five times; then Settings, Secret Settings, Use third party CA certificates.',
    },
    windows: {
      get: 'Get the certificate, and open the file.',
      install: 'Install Certificate, Current User, Place all certificates in the following store, Browse: Trusted Root Certification Authorities.',
      finish: 'Finish, and answer the warning with Yes.',
    },
    macos: {
      get: 'Get the certificate, and open the file: Keychain Access adds it to “login”.',
      trust: 'In Keychain Access open it, then Trust, “When using this certificate”: Always Trust.',
      close: 'Close the window, and enter your password.',
    },
    linux: {
      chrome: 'Chrome, Chromium: Settings, Privacy and security, Security, Manage certificates, Authorities (or Custom, Installed by you), Import: trust it for websites.',
      firefox: 'Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import: trust it to identify websites.',
    },
  },
});
