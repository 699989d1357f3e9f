// STOP over a link that fails: the real Link on sockets, timers and a clock of our own.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {afterEach, beforeEach, mock, test} from 'node:test';

import {Link} from '../../../web/seat/link/link.js';

const {good} = JSON.parse(
  readFileSync(new URL('../../vectors/drive_down.json', import.meta.url), 'utf8'));
const [welcome, state] = good.map((/** @type {{text: string}} */ {text}) => text);
const ESTOP = '{"kind":"estop"}';

class FakeSocket {
  static OPEN = 1;

  /** @param {string} url */
  constructor(url) {
    this.url = url;
    this.readyState = 0;
    this.bufferedAmount = 0;
    /** @type {string[]} */
    this.sent = [];
    this.onopen = () => {};
    this.onmessage = (/** @type {{data: unknown}} */ event) => void event;
    this.onclose = (/** @type {{code: number, reason: string}} */ event) => void event;
    sockets.push(this);
  }

  /** @param {string} text */
  send(text) {
    this.sent.push(text);
  }

  close() {
    this.readyState = 3;
  }

  opens() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  /** @param {string} text */
  says(text) {
    this.onmessage({data: text});
  }

  /** Answers every unanswered ping. */
  pongs() {
    for (const text of this.sent.splice(0)) {
      const {kind, seq, t} = JSON.parse(text);
      if (kind === 'ping') this.says(JSON.stringify({kind: 'pong', seq, t, clock_us: 1, nonce: 1}));
    }
  }
}

/** @type {FakeSocket[]} */
let sockets = [];
let nowMs = 0;
/** @type {Map<number, {act: () => void, everyMs: number, dueMs: number}>} */
const timers = new Map();
/** @type {Link} */
let link;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** @param {number} ms @param {() => void} [each] 50 ms */
function pass(ms, each = () => {}) {
  for (const endMs = nowMs + ms; nowMs < endMs;) {
    nowMs += 50;
    for (const timer of timers.values()) {
      if (nowMs < timer.dueMs) continue;
      timer.dueMs += timer.everyMs;
      timer.act();
    }
    each();
  }
}
/** @param {string} path */
const newest = (path) => /** @type {FakeSocket} */ (
  sockets.filter(({url}) => url.includes(path)).at(-1));
const drive = () => newest('/ws/drive');
const picture = () => newest('/ws/video').onmessage({data: new ArrayBuffer(4)});
const stops = () => drive().sent.filter((text) => text === ESTOP).length;

/** Opens the socket and lets the car send. */
function comesUp() {
  drive().opens();
  drive().says(welcome);
  drive().says(state);
}
/** Drops the link, and brings it back with another socket. */
async function another() {
  const before = drive();
  pass(600);
  assert.notEqual(link.state.kind, 'up');
  await settled();
  pass(200);
  await settled();
  assert.notEqual(drive(), before);
}

beforeEach(() => {
  nowMs = 1000;
  sockets = [];
  let made = 0;
  mock.method(globalThis, 'setInterval', (/** @type {() => void} */ act, everyMs = 0) => {
    made += 1;
    timers.set(made, {act, everyMs, dueMs: nowMs + everyMs});
    return made;
  });
  mock.method(globalThis, 'clearInterval', (/** @type {number} */ id) => timers.delete(id));
  mock.method(performance, 'now', () => nowMs);
  mock.method(globalThis, 'fetch', async () => ({ok: true}));
  Object.assign(globalThis, {
    WebSocket: FakeSocket, location: {href: 'http://car/'},
    PerformanceNavigationTiming: class {},
  });
  const nothing = () => {};
  link = new Link({
    client: 'a-client', hello: () => ({name: '', code: ''}),
    on: {message: nothing, frame: nothing, welcomed: nothing, filming: () => false,
      changed: nothing},
  });
  link.start();
  comesUp();
});
afterEach(() => {
  link.asleep();
  mock.restoreAll();
});

test('pictures are requested by the id from the welcome, never by the client id', async () => {
  const {video} = JSON.parse(welcome);
  assert.equal(newest('/ws/video').url, `ws://car/ws/video?id=${video}`);
  const before = newest('/ws/video');
  await another();
  drive().opens();
  assert.notEqual(newest('/ws/video'), before, 'no round trip for a name that is known');
  drive().says(welcome.replace(video, 'another'));
  assert.equal(newest('/ws/video').url, 'ws://car/ws/video?id=another');
  assert.ok(!sockets.some(({url}) => url.includes('a-client')));
});

test('picture socket sends a hello with the client id', () => {
  const socket = newest('/ws/video');
  assert.deepEqual(socket.sent, []);
  socket.opens();
  assert.deepEqual(socket.sent.map((text) => JSON.parse(text)),
    [{kind: 'hello', v: 1, client: 'a-client'}]);
});

test('wish returns the nonce of the newest message of the car on this socket', async () => {
  /** @param {number} clockUs @param {number} nonce */
  const pong = (clockUs, nonce) => JSON.stringify(
    {kind: 'pong', seq: 0, t: nowMs, clock_us: clockUs, nonce});
  const {clock_us: stateUs, nonce} = JSON.parse(state);
  assert.equal(link.seen.nonce, nonce);
  drive().says(pong(stateUs + 1, 51));
  drive().says(state);
  assert.equal(link.seen.nonce, 51, 'the state was made before');
  drive().says(pong(stateUs + 1, 52));
  assert.equal(link.seen.nonce, 52);
  await another();
  drive().opens();
  assert.equal(link.seen.nonce, 0);
  drive().says(pong(1, 53));
  assert.equal(link.seen.nonce, 53, 'a car that started again counts from 0');
});

test('pong of the second connection gives a nonce and a round trip, but does not confirm a STOP', () => {
  const repeated = /** @type {string[]} */ ([]);
  Object.assign(link, {redundant: {
    repeat: (/** @type {string} */ text) => repeated.push(text), close: () => undefined,
  }});
  drive().pongs();
  pass(100);
  link.stop();
  pass(100);
  const pings = repeated.map((text) => JSON.parse(text)).filter(({kind}) => kind === 'ping');
  assert.deepEqual(drive().sent.map((text) => JSON.parse(text)).filter(({kind}) => kind === 'ping'), pings);
  const [early, late] = pings.slice(-2).map(({seq, t}, number) => (
    {kind: 'pong', seq, t, clock_us: JSON.parse(state).clock_us + 1 + number, nonce: 60 + number}));
  nowMs += 40;
  link.receiveCopy(JSON.stringify(late));
  assert.equal(link.seen.nonce, 61);
  assert.equal(link.trips.ms(nowMs), 20, 'median of 0 and 40 ms');
  link.receiveCopy(JSON.stringify(early));
  link.receiveCopy(JSON.stringify(late));
  link.receiveCopy('{"kind":"closing"');
  assert.equal(link.seen.nonce, 61, 'an older one changes nothing');
  assert.equal(link.trips.tookMs.length, 2);
  assert.ok(link.pushedStop.waiting, 'its socket has not answered');
  drive().pongs();
  assert.ok(!link.pushedStop.waiting);
  assert.equal(link.trips.tookMs.length, 2, 'each ping counts once');
});

test('link: arriving pictures continue while /ws/drive reconnects', async () => {
  const [old, pictures] = [drive(), newest('/ws/video')];
  pictures.opens();
  pass(600, picture);
  assert.notEqual(link.state.kind, 'up', 'no pong came');
  for (let tries = 0; tries < 6; tries += 1) {
    await settled();
    pass(50, picture);
  }
  assert.notEqual(drive(), old);
  comesUp();
  assert.equal(link.state.kind, 'up');
  assert.equal(newest('/ws/video'), pictures);
  assert.equal(pictures.readyState, FakeSocket.OPEN);
});

test('link: video socket without pictures is closed with /ws/drive', async () => {
  const silent = newest('/ws/video');
  silent.opens();
  picture();
  await another();
  assert.notEqual(silent.readyState, FakeSocket.OPEN);
  drive().opens();
  assert.notEqual(newest('/ws/video'), silent);
});

test('link: pictures older than 2 s are dropped with their connection', () => {
  nowMs = 10_000;
  link.clock.reset();
  link.clock.add(nowMs, nowMs, nowMs * 1000);
  const queued = newest('/ws/video');
  queued.opens();
  const frame = new ArrayBuffer(20);
  const view = new DataView(frame);
  view.setBigUint64(8, BigInt((nowMs - 1900) * 1000), true);
  queued.onmessage({data: frame});
  assert.equal(newest('/ws/video'), queued);
  view.setBigUint64(8, BigInt((nowMs - 2100) * 1000), true);
  queued.onmessage({data: frame});
  assert.notEqual(newest('/ws/video'), queued);
  assert.equal(queued.readyState, 3);
});

test('link: page opened elsewhere closes its video socket, too', () => {
  newest('/ws/video').opens();
  picture();
  drive().onclose({code: 4001, reason: ''});
  assert.equal(link.state.kind, 'parked');
  assert.equal(link.video, null);
});

test('first video socket waits for the id from the welcome', async () => {
  link.videoId = '';
  await another();
  const before = newest('/ws/video');
  drive().opens();
  assert.equal(newest('/ws/video'), before);
  drive().says(welcome);
  assert.notEqual(newest('/ws/video'), before);
});

test('STOP that the car answers is sent once', async () => {
  link.stop();
  assert.equal(stops(), 1);
  pass(200, () => drive().pongs());
  assert.equal(link.pushedStop.waiting, false);
  await another();
  comesUp();
  assert.equal(stops(), 0);
});

test('STOP pushed while the link is down is sent right after the next hello', async () => {
  const dead = drive();
  pass(400);
  assert.equal(link.state.kind, 'probing');
  dead.sent = [];
  link.stop();
  assert.deepEqual(dead.sent, []);
  await settled();
  pass(200);
  await settled();
  drive().opens();
  assert.deepEqual(drive().sent.map((text) => JSON.parse(text).kind), ['hello', 'estop']);
  drive().says(welcome);
  pass(200, () => drive().pongs());
  assert.equal(link.pushedStop.waiting, false);
});

test('STOP sent into a socket that died without an answer is sent again', async () => {
  drive().pongs();
  link.stop();
  assert.equal(stops(), 1);
  await another();
  assert.equal(link.pushedStop.waiting, true);
  comesUp();
  assert.equal(stops(), 1);
});

test('STOP waits while the page is hidden for a moment, not for an hour', async () => {
  for (const [awayMs, expected] of [[30_000, 1], [3_600_000, 0]]) {
    pass(400);
    link.stop();
    link.asleep();
    nowMs += awayMs;
    link.awake();
    await settled();
    pass(600);
    await settled();
    drive().opens();
    assert.equal(stops(), expected, `${awayMs} ms`);
    drive().says(welcome);
    pass(200, () => drive().pongs());
  }
});

test('page is parked by the close code, whatever the reason text', () => {
  drive().onclose({code: 4000, reason: 'opened again elsewhere'});
  assert.notEqual(link.state.kind, 'parked');
  pass(200);
  link.act(link.policy.wake(nowMs));
  link.open();
  drive().onclose({code: 4001, reason: 'anders geöffnet'});
  assert.equal(link.state.kind, 'parked');
});

test('STOP in a parked tab takes the link back', async () => {
  link.act(link.policy.park('elsewhere'));
  link.stop();
  await settled();
  pass(100);
  await settled();
  comesUp();
  assert.equal(stops(), 1);
});

test('stuck /ws/drive is replaced despite pictures; its STOP goes to the next one', async () => {
  const stuck = drive();
  stuck.pongs();
  link.stop();
  pass(450, picture);
  assert.equal(link.state.kind, 'up');
  assert.ok(Number(link.trips.ms(nowMs)) >= 300, 'the round trip ages');
  pass(150, picture);
  assert.notEqual(link.state.kind, 'up');
  await settled();
  pass(200);
  await settled();
  assert.notEqual(drive(), stuck);
  drive().opens();
  assert.equal(stops(), 1);
});
