/** English: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Driver’s seat',
    title: 'Wi-Fi',
    pageTitle: '{car}: Wi-Fi',
    unlockHint: 'Enter the grown-up code to change the car’s Wi-Fi.',
    code: 'Grown-up code',
    unlock: 'Unlock',
    near: 'Networks near the car',
    look: 'Search again',
    own: 'The car’s own network',
    ownHint: 'The car opens this network when no known one is in range. Take a photo of the code now: scan it to join this network.',
    ownName: 'Network',
    key: 'Key',
    address: 'Car’s address',
    qr: 'QR code to join the car’s own network',
    cancel: 'Cancel',
    join: 'Join',

    asking: 'Waiting for the car…',
    silent: 'The car does not answer. It may be on another network now: join that network, or the car’s own.',
    // Where the car is.
    phases: {
      absent: 'The car has no Wi-Fi.',
      searching: 'The car is searching for known networks. After half a minute it opens its own.',
      known: 'The car is on the network {ssid}.',
      opening: 'The car is opening its own network, {own}.',
      own: 'The car is on its own network, {own}.',
      joining: 'The car is joining {ssid}. Join it with this device too, and open {address}. If the car cannot join, its network {own} is back in about {seconds} s, and this page shows the reason.',
      failed: 'The car is not on any network. It will try again in half a minute.',
    },
    absent: '{why}.',
    notJoined: 'The car could not join {ssid}: {why}.',
    unheard: 'No networks found yet.',
    heard: 'Last search: {ago}.',
    deaf: 'The car cannot search while its own network is open.',
    nothing: 'No network is in range. Move the car closer to one, and search again.',
    strong: 'strong', good: 'good', weak: 'weak',
    security: {open: 'open, no key', other: 'needs a user name: not supported'},
    other: 'Another network',
    joinTitle: 'Join {ssid}',
    otherTitle: 'Join another network',
    ssid: 'Name of the network',
    otherHint: 'Hidden networks are not listed: type the name exactly, and leave the key empty if the network has none.',
    joinHint: 'The car leaves its current network, and this page loses its connection.',
    openHint: 'This network has no key: anyone nearby can watch, and try codes.',
  },
});
