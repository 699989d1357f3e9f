/** English: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'The car',
    title: 'Trust this car',
    first: '1. Get the certificate',
    why: 'The car vouches for itself: with its certificate your browser knows it again, and does not warn any more.',
    vouches: 'What it vouches for: web pages whose name ends in .local, addresses in home networks (10.x, 172.16.x to 172.31.x, 192.168.x, 169.254.x), this device itself (localhost, 127.x), and the car’s own names and addresses. It vouches for no other site and for no e-mail. A thief of the car’s memory card could pose as any of these, your router’s page for example: if the card is lost, remove the certificate.',
    download: 'Get the certificate',
    name: 'It is called',
    fingerprint: 'Its SHA-256 is',
    second: '2. Tell your system',
    undo: 'To take it back, remove the certificate at the same place.',
    third: '3. Look whether it worked',
    check: 'Look',
    open: 'Open the car by https',

    asking: 'Asking the car…',
    silent: 'The car does not answer. Is this device in its network? Then load this page again.',
    needless: 'Here the car is open to this computer only, without https: there is nothing to trust.',
    looking: 'Looking…',
    trusted: 'It worked: this browser trusts the car. (If you told the browser lately to go on in spite of its warning, it would say the same.)',
    strange: 'Not yet: this browser does not trust the car. Do the steps above, close the browser, open this page again and look once more.',
    secure: 'This page came by https. If the browser did not warn, it trusts the car; to look closer, open {address}.',

    // How each system is told.
    get: 'Get the certificate.',
    ios: {
      get: 'Open this page in Safari, get the certificate, and push Allow.',
      install: 'Settings, General, VPN & Device Management: push the certificate, Install.',
      trust: 'Settings, General, About, Certificate Trust Settings: switch it on.',
    },
    android: {
      install: 'Settings, Security & privacy, More security settings, Encryption & credentials, Install a certificate, CA certificate, Install anyway: choose the file. (Search the settings for “CA certificate” if yours are in another order.)',
      firefox: 'Firefox only: Settings, About Firefox, push the logo five times; then Settings, Secret Settings, Use third party CA certificates.',
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
