/** The page's socket, /ws/buttons: `Reconnect` decides when to open it, `Link` opens it. */

import {VERSION, WireError} from '../lib/wire.js';
import {encode, parse} from './messages.js';

/** @import {ButtonsDown, ButtonsUp} from '../lib/types.js' */

const TICK_MS = 250;
/** Silence of a dead socket: the car sends twice a second. */
export const SILENT_MS = 1600;
/** How long an attempt may take: TCP asks a second time after one second. */
export const TRY_MS = 2500;
export const AGAIN_MS = 700;
/** Only a page that slept has so long a gap between two ticks. */
const SLEPT_MS = 1000;

/** Decides when to open a socket and when to give it up. Pure. */
export class Reconnect {
  /** @param {number} nowMs an attempt begins */
  constructor(nowMs) {
    this.tickMs = nowMs;
    /** @type {{kind: 'trying' | 'up' | 'waiting', sinceMs: number}} */
    this.state = {kind: 'trying', sinceMs: nowMs};
  }

  get up() {
    return this.state.kind === 'up';
  }

  /** A message came. @param {number} nowMs */
  heard(nowMs) {
    if (this.state.kind !== 'waiting') this.state = {kind: 'up', sinceMs: nowMs};
  }

  /** The socket closed, or would not open. @param {number} nowMs */
  failed(nowMs) {
    this.state = {kind: 'waiting', sinceMs: nowMs};
  }

  /**
   * Looks at the clock, often. True: drop the socket and open a new one.
   * @param {number} nowMs
   */
  tick(nowMs) {
    const slept = nowMs - this.tickMs > SLEPT_MS;
    this.tickMs = nowMs;
    if (slept) this.state = {...this.state, sinceMs: nowMs};
    const limitMs = {trying: TRY_MS, up: SILENT_MS, waiting: AGAIN_MS}[this.state.kind];
    if (nowMs - this.state.sinceMs <= limitMs) return false;
    this.state = {kind: 'trying', sinceMs: nowMs};
    return true;
  }
}

export class Link {
  /**
   * @param {{held: () => number, changed: () => void,
   *   heard: (message: ButtonsDown) => void}} parts
   */
  constructor({held, changed, heard}) {
    this.held = held;
    this.changed = changed;
    this.heard = heard;
    /** @type {Reconnect | null} */
    this.policy = null;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.timer = 0;
    this.beat = 0;
    this.wasUp = false;
  }

  get up() {
    return this.policy?.up === true;
  }

  /** Opens the link, when the page is visible. */
  start() {
    if (this.policy) return;
    this.policy = new Reconnect(performance.now());
    this.timer = Number(setInterval(() => this.tick(), TICK_MS));
    this.open();
  }

  /** Closes the link, when the page is hidden. */
  stop() {
    clearInterval(this.timer);
    this.policy = null;
    this.drop();
    this.notify();
  }

  /** @param {ButtonsUp} message */
  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(encode(message));
  }

  /** Sends all that our fingers hold, so that no button sticks. */
  hold() {
    if (this.up) this.send({kind: 'hold', held: this.held()});
  }

  tick() {
    this.beat += 1;
    if (this.beat % 2 === 0) this.hold();
    if (this.policy?.tick(performance.now())) {
      this.drop();
      this.open();
    }
    this.notify();
  }

  open() {
    const socket = new WebSocket(new URL('ws/buttons', location.href.replace(/^http/, 'ws')));
    this.socket = socket;
    socket.onopen = () => {
      if (this.socket === socket) this.send({kind: 'hello', v: VERSION});
    };
    socket.onmessage = (event) => {
      if (this.socket === socket) this.receive(String(event.data));
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.policy?.failed(performance.now());
      this.notify();
    };
  }

  /** Closes the socket; our own closing is no failure. */
  drop() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  /** Takes one frame. @param {string} frame */
  receive(frame) {
    try {
      const message = parse(frame);
      this.policy?.heard(performance.now());
      this.notify();
      if (message) this.heard(message);
    } catch (fault) {
      if (!(fault instanceof WireError)) throw fault;
      console.warn(fault.message);
    }
  }

  /** Calls `changed` if the link came up or went down. */
  notify() {
    if (this.up === this.wasUp) return;
    this.wasUp = this.up;
    this.changed();
  }
}
