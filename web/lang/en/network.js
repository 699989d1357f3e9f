/** English: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Drive',
    title: 'Wi-Fi',
    pageTitle: '{car}: Wi-Fi',
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

    asking: 'Asking the car …',
    silent: 'The car does not answer. It may be in another network now: join that one, or the car’s own.',
    // Where the car is.
    phases: {
      absent: 'The car has no Wi-Fi.',
      searching: 'The car looks for networks that it knows. After half a minute it opens its own.',
      known: 'The car is in the network {ssid}.',
      opening: 'The car opens its own network, {own}.',
      own: 'The car is in its own network, {own}.',
      joining: 'The car joins {ssid}. Join it with this device, too, and open {address}. If that does not work, the network {own} is back in about {seconds} s: then this page says why.',
      failed: 'The car is in no network. It tries again in half a minute.',
    },
    notJoined: '{ssid} was not joined: {why}.',
    unheard: 'None was heard yet.',
    heard: 'Heard {ago}.',
    deaf: 'In its own network the car hears no other.',
    nothing: 'No network is near. Bring the car nearer to one, and look again.',
    strong: 'strong', good: 'good', weak: 'weak',
    security: {open: 'without a key', other: 'needs a user name: not for this car'},
    joinTitle: 'Join {ssid}',
    joinHint: 'The car leaves the network that it is in, and this page loses it.',
    openHint: 'Nobody needs a key for it: whoever is near may watch, and try codes.',
  },
});
