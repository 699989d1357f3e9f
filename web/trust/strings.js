/** Words of the page about trust. */

export const MARKUP_STRINGS = {
  seat: 'The car',
  title: 'Trust this car',
  first: '1. Get the certificate',
  why: 'The car vouches for itself: with its certificate your browser knows it again, and ' +
    'does not warn any more. It is good for this car and for addresses in home networks; ' +
    'it can vouch for no other site.',
  download: 'Get the certificate',
  name: 'It is called',
  fingerprint: 'Its SHA-256 is',
  second: '2. Tell your system',
  undo: 'To take it back, remove the certificate at the same place.',
  third: '3. Look whether it worked',
  check: 'Look',
  open: 'Open the car by https',
};

export const STRINGS = {
  asking: 'Asking the car…',
  silent: 'The car does not answer. Is this device in its network? Then load this page again.',
  needless: 'Here the car is open to this computer only, without https: there is nothing to trust.',
  looking: 'Looking…',
  trusted: 'It worked: this browser trusts the car. (If you told the browser lately to go ' +
    'on in spite of its warning, it would say the same.)',
  strange: 'Not yet: this browser does not trust the car. Do the steps above, close the ' +
    'browser, open this page again and look once more.',
  secure: (/** @type {string} */ address) =>
    `This page came by https. If the browser did not warn, it trusts the car; to look ` +
    `closer, open ${address}.`,
};

/** How each system is told. @type {{name: string, is: RegExp, steps: string[]}[]} */
export const SYSTEMS = [
  {
    name: 'iPhone, iPad', is: /iPhone|iPad/,
    steps: [
      'Open this page in Safari, get the certificate, and push Allow.',
      'Settings, General, VPN & Device Management: push the certificate, Install.',
      'Settings, General, About, Certificate Trust Settings: switch it on.',
    ],
  },
  {
    name: 'Android', is: /Android/,
    steps: [
      'Get the certificate.',
      'Settings, Security & privacy, More security settings, Encryption & credentials, ' +
        'Install a certificate, CA certificate, Install anyway: choose the file. (Search ' +
        'the settings for "CA certificate" if yours are in another order.)',
      'Firefox only: Settings, About Firefox, push the logo five times; then Settings, ' +
        'Secret Settings, Use third party CA certificates.',
    ],
  },
  {
    name: 'Windows', is: /Windows/,
    steps: [
      'Get the certificate, and open the file.',
      'Install Certificate, Current User, Place all certificates in the following store, ' +
        'Browse: Trusted Root Certification Authorities.',
      'Finish, and answer the warning with Yes.',
    ],
  },
  {
    name: 'macOS', is: /Macintosh/,
    steps: [
      'Get the certificate, and open the file: Keychain Access adds it to "login".',
      'In Keychain Access open it, then Trust, "When using this certificate": Always Trust.',
      'Close the window, and enter your password.',
    ],
  },
  {
    name: 'Linux', is: /Linux|X11/,
    steps: [
      'Get the certificate.',
      'Chrome, Chromium: Settings, Privacy and security, Security, Manage certificates, ' +
        'Authorities (or Custom, Installed by you), Import: trust it for websites.',
      'Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import: ' +
        'trust it to identify websites.',
    ],
  },
];

/** Which system a browser says it runs on: the place in SYSTEMS, -1 for none of them.
 * @param {string} agent @param {number} touches how many fingers its screen feels */
export const systemOf = (agent, touches) =>
  // An iPad calls itself a Macintosh, which has no touch screen.
  (/Macintosh/.test(agent) && touches > 1 ? 0 : SYSTEMS.findIndex(({is}) => is.test(agent)));

/** A fingerprint as systems show it. @param {string} hex */
export const grouped = (hex) => (hex.toUpperCase().match(/../g) ?? []).join(':');
