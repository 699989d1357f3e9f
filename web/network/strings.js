/** The strings on the Wi-Fi page, in one place, so that they can be translated. */

/** Strings that network.html names by `data-t` (text) and `data-t-label`. */
export const MARKUP_STRINGS = {
  seat: 'Drive',
  title: 'Wi-Fi',
  unlockHint: 'A grown-up sets which Wi-Fi the car is in.',
  code: 'Grown-ups’ code',
  unlock: 'Unlock',
  near: 'Networks near the car',
  look: 'Look again',
  own: 'The car’s own network',
  ownHint: 'Where the car knows no network it opens this one. Photograph the picture now: a phone’s camera joins by it.',
  ownName: 'Network',
  key: 'Key',
  address: 'The car is at',
  qr: 'A picture by which a phone joins the car’s own network',
  cancel: 'Cancel',
  join: 'Join',
};

export const STRINGS = {
  pageTitle: (/** @type {string} */ car) => `${car}: Wi-Fi`,
  asking: 'Asking the car …',
  silent: 'The car does not answer. It may be in another network now: join that one, or the car’s own.',
  absent: 'The car has no Wi-Fi.',
  searching: 'The car looks for networks that it knows. After half a minute it opens its own.',
  known: (/** @type {string} */ ssid) => `The car is in the network ${ssid}.`,
  opening: (/** @type {string} */ own) => `The car opens its own network, ${own}.`,
  inOwn: (/** @type {string} */ own) => `The car is in its own network, ${own}.`,
  failed: 'The car is in no network. It tries again in half a minute.',
  /** @param {string} ssid @param {string} own @param {number} withinS @param {string} at */
  joining: (ssid, own, withinS, at) =>
    `The car joins ${ssid}. Join it with this device, too, and open ${at}. If that does not work, the network ${own} is back in about ${withinS} s: then this page says why.`,
  /** @param {string} ssid @param {string} why */
  notJoined: (ssid, why) => (ssid ? `${ssid} was not joined: ${why}.` : `${why}.`),
  /** @param {number | null} ageS @param {boolean} own */
  seen: (ageS, own) => {
    if (ageS === null) return 'None was heard yet.';
    const age = ageS < 120 ? `${ageS} s` : `${Math.round(ageS / 60)} min`;
    const deaf = own ? ' In its own network the car hears no other.' : '';
    return `Heard ${age} ago.${deaf}`;
  },
  nothing: 'No network is near. Bring the car nearer to one, and look again.',
  strength: (/** @type {number} */ share) =>
    (share >= 66 ? 'strong' : share >= 40 ? 'good' : 'weak'),
  open: 'without a key',
  other: 'needs a user name: not for this car',
  joinTitle: (/** @type {string} */ ssid) => `Join ${ssid}`,
  joinHint: 'The car leaves the network that it is in, and this page loses it.',
  openHint: 'Nobody needs a key for it: whoever is near may watch, and try codes.',
};
