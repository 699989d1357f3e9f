/**
 * /ws/copies: a second connection while the link of the page at the wheel loses packets. Each
 * wish, ping and picture travels on both; the first copy counts. It is open only while it helps,
 * and is optional.
 */

import {VERSION} from '../../lib/wire.js';
import {encode} from '../messages.js';
import {Merge} from '../../video/merge.js';
import {address} from './link.js';

/** @import {State} from '../../lib/types.js' */

/** Of the packets of our pictures; with fewer lost it costs more than it gives. */
const NEAR = {from: 0.02, until: 0.005};
/** A lost packet comes again after a round trip: on a far link it costs more. */
const FAR = {from: 0.004, until: 0.001};
const FAR_MS = 60;
const WELL_MS = 20_000;
const AGAIN_MS = 1000;
/** Data queued behind this is stale. */
const STUCK_BYTES = 2048;

export class RedundantLink {
  /** @param {import('./link.js').Link} link */
  constructor(link) {
    this.link = link;
    this.merge = new Merge();
    /** @type {WebSocket | null} */
    this.socket = null;
    this.openedMs = -Infinity;
    this.lossyMs = -Infinity;
  }

  /** Opens or closes it according to the car's state. @param {State} state @param {number} nowMs */
  state({role, lost}, nowMs) {
    const {from, until} = (this.link.trips.ms(nowMs) ?? 0) >= FAR_MS ? FAR : NEAR;
    if ((lost ?? 0) >= until) this.lossyMs = nowMs;
    if (role !== 'driver' || nowMs - this.lossyMs > WELL_MS) this.socket?.close();
    else if ((lost ?? 0) >= from && !this.socket && this.link.video &&
      nowMs - this.openedMs >= AGAIN_MS) this.open(nowMs);
  }

  /** @param {number} nowMs */
  open(nowMs) {
    this.openedMs = nowMs;
    const socket = new WebSocket(address('ws/copies'));
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    socket.onopen = () => {
      const {client, hello} = this.link;
      socket.send(encode({kind: 'hello', v: VERSION, client, ...hello()}));
      if (this.socket === socket) this.merge.both = true;
    };
    socket.onmessage = (event) => {
      if (this.socket !== socket) return;
      if (event.data instanceof ArrayBuffer) this.link.arrived(event.data, 1);
      else this.link.receiveCopy(String(event.data));
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.merge.both = false;
    };
  }

  /** Repeats a wish or ping that was sent by /ws/drive. @param {string} text */
  repeat(text) {
    const {socket} = this;
    if (socket?.readyState === WebSocket.OPEN && socket.bufferedAmount <= STUCK_BYTES) {
      socket.send(text);
    }
  }

  /** /ws/video ended; the next one restarts its counter. */
  close() {
    const {socket} = this;
    this.socket = null;
    this.merge = new Merge();
    socket?.close();
  }
}
