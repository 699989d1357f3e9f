/** The socket of a page of buttons and its rebirth. Line says when, Link does it. */

import {VERSION, WireError} from '../lib/wire.js';
import {encode, parse} from './wire.js';

const TICK_MS = 250;
/** The car speaks twice a second. */
export const SILENT_MS = 1600;
/** As long as an attempt may take: TCP asks a second time after one second. */
export const TRY_MS = 2500;
export const AGAIN_MS = 700;
/** A gap between ticks that only a page that slept can have. */
const SLEPT_MS = 1000;

/** When to open a socket and when to give one up. Pure. */
export class Line {
  /** @param {number} nowMs an attempt begins */
  constructor(nowMs) {
    this.tickMs = nowMs;
    /** @type {{kind: 'trying' | 'up' | 'waiting', sinceMs: number}} */
    this.state = {kind: 'trying', sinceMs: nowMs};
  }

  get up() {
    return this.state.kind === 'up';
  }

  /** @param {number} nowMs */
  heard(nowMs) {
    if (this.state.kind !== 'waiting') this.state = {kind: 'up', sinceMs: nowMs};
  }

  /** The socket closed, or would not open. @param {number} nowMs */
  failed(nowMs) {
    this.state = {kind: 'waiting', sinceMs: nowMs};
  }

  /** Often. True: drop what there is, and open a socket. @param {number} nowMs */
  tick(nowMs) {
    const slept = nowMs - this.tickMs > SLEPT_MS;
    this.tickMs = nowMs;
    if (slept) this.state = {...this.state, sinceMs: nowMs};
    const patience = {trying: TRY_MS, up: SILENT_MS, waiting: AGAIN_MS}[this.state.kind];
    if (nowMs - this.state.sinceMs <= patience) return false;
    this.state = {kind: 'trying', sinceMs: nowMs};
    return true;
  }
}

export class Link {
  /**
   * @param {{held: () => number, changed: () => void,
   *   heard: (message: import('../lib/types.js').ButtonsDown) => void}} parts
   */
  constructor({held, changed, heard}) {
    this.held = held;
    this.changed = changed;
    this.heard = heard;
    /** @type {Line | null} */
    this.line = null;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.timer = 0;
    this.beat = 0;
    this.wasUp = false;
  }

  get up() {
    return this.line?.up === true;
  }

  /** Somebody looks at the page. */
  start() {
    if (this.line) return;
    this.line = new Line(performance.now());
    this.timer = Number(setInterval(() => this.tick(), TICK_MS));
    this.open();
  }

  /** Nobody does. */
  stop() {
    clearInterval(this.timer);
    this.line = null;
    this.drop();
    this.tell();
  }

  /** @param {import('../lib/types.js').ButtonsUp} message */
  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(encode(message));
  }

  /** What our fingers hold: the whole truth, so that nothing sticks. */
  hold() {
    if (this.up) this.send({kind: 'hold', held: this.held()});
  }

  tick() {
    this.beat += 1;
    if (this.beat % 2 === 0) this.hold();
    if (this.line?.tick(performance.now())) {
      this.drop();
      this.open();
    }
    this.tell();
  }

  open() {
    const socket = new WebSocket(new URL('/ws/buttons', location.href.replace(/^http/, 'ws')));
    this.socket = socket;
    socket.onopen = () => {
      if (this.socket === socket) this.send({kind: 'hello', v: VERSION});
    };
    socket.onmessage = (event) => {
      if (this.socket === socket) this.take(String(event.data));
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.line?.failed(performance.now());
      this.tell();
    };
  }

  /** Our own closing is no failure. */
  drop() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  /** @param {string} frame */
  take(frame) {
    try {
      const message = parse(frame);
      this.line?.heard(performance.now());
      this.tell();
      if (message) this.heard(message);
    } catch (fault) {
      if (!(fault instanceof WireError)) throw fault;
      console.warn(fault.message);
    }
  }

  tell() {
    if (this.up === this.wasUp) return;
    this.wasUp = this.up;
    this.changed();
  }
}
