// Life of the second connection, and the messages sent by it.

import assert from 'node:assert/strict';
import {test} from 'node:test';

class FakeSocket extends EventTarget {
  static OPEN = 1;
  /** @type {FakeSocket[]} */
  static made = [];

  /** @param {string} url */
  constructor(url) {
    super();
    this.url = url;
    this.readyState = 0;
    this.bufferedAmount = 0;
    /** @type {string[]} */
    this.said = [];
    this.onopen = this.onclose = this.onmessage = (/** @type {any} */ _) => undefined;
    FakeSocket.made.push(this);
  }

  opens() {
    this.readyState = 1;
    this.onopen({});
  }

  /** @param {string} text */
  send(text) {
    this.said.push(text);
  }

  close() {
    this.readyState = 3;
    this.onclose({});
  }
}
Object.assign(globalThis, {
  WebSocket: FakeSocket, location: {href: 'http://car:8080/'},
});
const {RedundantLink} = await import('../../../web/seat/link/redundant_link.js');

/** A page at the wheel that receives pictures, so many ms away. */
function page(roundTripMs = 20) {
  FakeSocket.made.length = 0;
  const arrived = /** @type {[ArrayBuffer, number][]} */ ([]);
  const link = {
    client: 'client-me', hello: () => ({name: 'Ann'}), video: {},
    trips: {ms: () => roundTripMs},
    arrived: (/** @type {ArrayBuffer} */ frame, /** @type {number} */ way) => arrived.push([frame, way]),
  };
  const copies = new RedundantLink(/** @type {any} */ (link));
  /** @param {number | null} lost @param {number} nowMs @param {string} [role] */
  const state = (lost, nowMs, role = 'driver') =>
    copies.state(/** @type {any} */ ({role, lost}), nowMs);
  return {copies, link, arrived, state};
}

test('second connection opens once, only for the driver when packets are lost', () => {
  const {copies, link, state} = page();
  state(0.3, 0, 'watching');
  state(0.01, 100);
  state(null, 200);
  Object.assign(link, {video: null});
  state(0.3, 300);
  assert.equal(FakeSocket.made.length, 0);
  Object.assign(link, {video: {}});
  state(0.03, 400);
  state(0.03, 500);
  const [socket, ...more] = FakeSocket.made;
  assert.equal(more.length, 0);
  assert.equal(socket.url, 'ws://car:8080/ws/copies');
  assert.equal(copies.merge.both, false);
  socket.opens();
  assert.equal(copies.merge.both, true);
  assert.deepEqual(JSON.parse(socket.said[0]), {kind: 'hello', v: 1, client: 'client-me', name: 'Ann'});
});

test('second connection carries wishes, pictures and pongs, but drops wishes if its buffer fills', () => {
  const {copies, link, arrived, state} = page();
  const texts = /** @type {string[]} */ ([]);
  Object.assign(link, {receiveCopy: (/** @type {string} */ text) => texts.push(text)});
  copies.repeat('early');
  state(0.03, 0);
  const [socket] = FakeSocket.made;
  copies.repeat('early');
  socket.opens();
  copies.repeat('one');
  socket.bufferedAmount = 5000;
  copies.repeat('two');
  assert.deepEqual(socket.said.slice(1), ['one']);
  const frame = new ArrayBuffer(20);
  socket.onmessage({data: frame});
  socket.onmessage({data: 'text'});
  assert.deepEqual(arrived, [[frame, 1]]);
  assert.deepEqual(texts, ['text']);
});

test('second connection ends with the wheel, or after a long time without loss', () => {
  for (const [lost, ms, role] of /** @type {const} */ ([[0.03, 200, 'watching'], [0, 20_101, 'driver']])) {
    const {copies, state} = page();
    state(0.03, 100);
    FakeSocket.made[0].opens();
    state(0, 150);
    assert.ok(copies.socket);
    state(lost, ms, role);
    assert.equal(copies.socket, null);
    assert.equal(copies.merge.both, false);
  }
});

test('second connection of a far page opens at a smaller loss, and stays as long', () => {
  const {copies, state} = page(100);
  state(0.003, 0);
  assert.equal(FakeSocket.made.length, 0);
  state(0.006, 100);
  assert.equal(FakeSocket.made.length, 1);
  FakeSocket.made[0].opens();
  state(0.002, 20_000);
  state(0, 40_000);
  assert.ok(copies.socket);
  state(0, 40_001);
  assert.equal(copies.socket, null);
});

test('closed second connection is opened again after a second', () => {
  const {copies, state} = page();
  state(0.03, 0);
  FakeSocket.made[0].opens();
  FakeSocket.made[0].close();
  assert.equal(copies.merge.both, false);
  state(0.03, 900);
  assert.equal(FakeSocket.made.length, 1);
  state(0.03, 1000);
  assert.equal(FakeSocket.made.length, 2);
});

test('new /ws/video starts a new merge; messages of the old copies are ignored', () => {
  const {copies, arrived, state} = page();
  state(0.03, 0);
  const [socket] = FakeSocket.made;
  const {merge} = copies;
  copies.close();
  assert.notEqual(copies.merge, merge);
  socket.opens();
  socket.onmessage({data: new ArrayBuffer(20)});
  socket.onclose({});
  assert.equal(copies.merge.both, false);
  assert.deepEqual(arrived, []);
});
