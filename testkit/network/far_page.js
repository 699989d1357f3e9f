/**
 * The seat's link without a browser: the page's own modules on Node.js, a stick held forward, and
 * a line of JSON for each picture that a decoder could show.
 *
 *   node --experimental-websocket far_page.js http://HOST:PORT/ CODE
 *
 * It lets go after a stop, clears it, and pushes the stick again, as a person would.
 */

import net from 'node:net';

import {parseVideo} from '../../web/lib/wire.js';
import {Controls} from '../../web/seat/input/controls.js';
import {Link} from '../../web/seat/link/link.js';
import {RedundantLink} from '../../web/seat/link/redundant_link.js';
import {mostRttMs} from '../../web/seat/state.js';

const [url, code] = process.argv.slice(2);
const WISH = {throttle: 0.3, steer: 0};
const NEUTRAL = {throttle: 0, steer: 0};
const [BEAT_MS, KEY_EVERY_MS] = [100, 300];

// Browsers send at once, with the page's origin, and know where the page is.
const {connect} = net.Socket.prototype;
net.Socket.prototype.connect = function (...words) {
  this.setNoDelay(true);
  return connect.apply(this, words);
};
globalThis.location = new URL(url);
globalThis.PerformanceNavigationTiming = class {};
const {WebSocket: NodeSocket, fetch: nodeFetch} = globalThis;
globalThis.WebSocket = class extends NodeSocket {
  constructor(address) {
    super(address, {headers: {origin: location.origin}});
  }
};
globalThis.fetch = (path, options) => nodeFetch(new URL(path, url), options);

const nowUs = () => Number(process.hrtime.bigint() / 1000n);
const tell = (message) => process.stdout.write(`${JSON.stringify({at_us: nowUs(), ...message})}\n`);

/** @type {any} */
let [state, welcome] = [null, null];
let [sequence, askedMs, copies] = [-1, -Infinity, false];

/** Tells of a picture that follows the last one, or asks for a key frame. */
function shown(bytes) {
  const frame = parseVideo(bytes);
  if (!frame.key && frame.sequence !== ((sequence + 1) >>> 0)) {
    if (performance.now() - askedMs < KEY_EVERY_MS) return;
    askedMs = performance.now();
    link.requestKey();
    return;
  }
  ({sequence} = frame);
  tell({kind: 'picture', capture_us: frame.captureUs, key: frame.key});
}

const roundTripMs = () => (link.up ? link.trips.ms(performance.now()) : null);
const driving = () => link.up && state?.role === 'driver';
const late = () => welcome !== null && (roundTripMs() ?? 0) > mostRttMs(welcome);

const link = new Link({
  client: crypto.randomUUID(),
  hello: () => ({name: 'Ann', code}),
  on: {
    message: (message) => {
      if (message.kind === 'welcome') welcome = message;
      if (message.kind === 'state') state = message;
      if (message.kind === 'error') tell(message);
    },
    frame: shown,
    welcomed: () => controls.restart(),
    filming: () => state?.camera === 'ok',
    changed: () => tell({kind: 'link', is: link.state.kind}),
  },
});
link.redundant = new RedundantLink(link);
const controls = new Controls({
  send: (message) => link.send(message),
  nonce: () => link.seen.nonce,
  late, driving,
  changed: () => undefined,
});

setInterval(() => {
  if (!link.up || !state) return;
  const both = link.redundant.merge.both;
  if (both !== copies) tell({kind: 'copies', is: both});
  copies = both;
  tell({kind: 'beat', late: late() || controls.bar.barred, round_trip_ms: roundTripMs(), lost: state.lost ?? 0,
    reason: state.reason});
  if (state.role !== 'driver') link.send({kind: 'take'});
  else if (state.stop && state.stop.clears !== 'neutral') link.send({kind: 'resume'});
  controls.set('keys', state.stop || controls.bar.barred || late() || !driving() ? NEUTRAL : WISH);
}, BEAT_MS);

link.start();
controls.awake();
process.on('SIGTERM', () => process.exit(0));
