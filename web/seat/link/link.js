/**
 * The page's two sockets, /ws/drive and /ws/video: pings, and reconnecting. `Link` owns
 * both sockets and carries out reconnect.js.
 */

import {VERSION, WireError} from '../../lib/wire.js';
import {CarClock, RoundTrips} from './clock.js';
import {Reconnect} from './reconnect.js';
import {StaleQueue, captureUs} from './stale.js';
import {StopRequest} from '../input/command.js';
import {encode, parse} from '../messages.js';

/** @import {Upward} from '../../lib/types.js' */

const TICK_MS = 50;
const PING_MS = 100;
const VIDEO_AGAIN_MS = 500;
/** A picture this new: the sockets that carry pictures work. */
const PICTURES_MS = 200;
/** No picture for so long on a link that is up: its socket is stuck in TCP's back-off. */
const VIDEO_STUCK_MS = 2000;
/** A socket with more than this to send is stuck: wishes would arrive too late. */
const STUCK_BYTES = 2048;
/** Close code of a socket whose page was opened a second time. */
const ELSEWHERE = 4001;

export class Link {
  /**
   * @param {{client: string, hello: () => {name: string}, on: import('../types.js').Listener}} parts
   */
  constructor({client, hello, on}) {
    this.client = client;
    this.hello = hello;
    this.on = on;
    this.clock = new CarClock();
    this.trips = new RoundTrips();
    this.pushedStop = new StopRequest();
    this.queue = new StaleQueue();
    this.policy = new Reconnect(performance.now(), navigationRttMs());
    /** @type {WebSocket | null} */
    this.drive = null;
    /** @type {WebSocket | null} */
    this.video = null;
    /** Loads after the first screen. @type {import('./redundant_link.js').RedundantLink | null} */
    this.redundant = null;
    /** @type {Map<number, AbortController>} */
    this.probes = new Map();
    this.pingSeq = this.pongSeq = 0;
    /** Most pictures a second that this device can show; 0: all. */
    this.fpsMost = 0;
    /** For our pictures; unlike `client` it stands in a URL. */
    this.videoId = '';
    /** The newest state or pong on this socket. */
    this.seen = {clockUs: 0, nonce: 0};
    this.frameMs = 0;
    /** When the last picture came on the sockets of now. */
    this.pictureMs = -Infinity;
    this.timers = /** @type {number[]} */ ([]);
    this.reportedKind = '';
    /** Status of an answer that is not the car's; 0 for none. */
    this.probeStatus = 0;
  }

  get state() {
    return this.policy.state;
  }

  get up() {
    return this.policy.state.kind === 'up';
  }

  /** The part that fails while something answers at the car's address; '' if none is known. */
  get fault() {
    return faultOf({refused: this.policy.refused, status: this.probeStatus, secure: location.protocol === 'https:'});
  }

  start() {
    this.open();
    this.awake();
  }

  /** Timers run and pictures come only while the page is visible. */
  awake() {
    if (this.timers.length > 0) return;
    this.pushedStop.pageSeen(performance.now());
    if (this.up && this.video === null) this.openVideo();
    this.tick();
    this.ping();
    this.timers = [setInterval(() => this.tick(), TICK_MS),
      setInterval(() => this.ping(), PING_MS)].map(Number);
  }

  asleep() {
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
    this.closeVideo();
  }

  /** Connects again after the link was parked. */
  wake() {
    this.act(this.policy.wake(performance.now()));
  }

  /** Closes the link: the page goes away. */
  close() {
    this.act(this.policy.park('closed'));
  }

  /** Sends a message if the link is up; true if it was sent. @param {Upward} message */
  send(message) {
    if (!this.up || this.drive?.readyState !== WebSocket.OPEN) return false;
    const moves = message.kind === 'drive' && (message.throttle !== 0 || message.steer !== 0);
    if (moves && this.drive.bufferedAmount > STUCK_BYTES) return false;
    const text = encode(message);
    this.drive.send(text);
    if (message.kind === 'drive' || message.kind === 'ping') this.redundant?.repeat(text);
    return true;
  }

  /** Sends STOP now, and on each new socket until the car has answered behind it. */
  stop() {
    this.pushedStop.push(performance.now());
    if (this.send({kind: 'estop'})) this.pushedStop.sent(this.pingSeq);
    this.wake();
  }

  /** Asks the car for a key frame. */
  requestKey() {
    if (this.video?.readyState === WebSocket.OPEN) this.video.send('key');
  }

  /** Asks the car for at most so many pictures a second, now and on each new socket. @param {number} most */
  requestFps(most) {
    this.fpsMost = most;
    if (this.video?.readyState === WebSocket.OPEN) this.video.send(`fps ${most}`);
  }

  /** @param {import('../types.js').Act[]} acts */
  act(acts) {
    for (const act of acts) {
      if (act.do === 'open') this.open();
      else if (act.do === 'close') this.closeFailed();
      else if (act.do === 'probe') this.probe(act.id);
      else this.probes.get(act.id)?.abort();
    }
    if (this.state.kind !== this.reportedKind) {
      this.reportedKind = this.state.kind;
      this.on.changed();
    }
  }

  tick() {
    const nowMs = performance.now();
    this.act(this.policy.tick(nowMs));
    const stuck = nowMs - this.frameMs > Math.max(VIDEO_STUCK_MS, 4 * this.policy.rttMs);
    // A camera that is known to be off sends nothing: then a new socket is no cure.
    if (this.up && stuck && this.on.filming()) this.openVideo();
  }

  ping() {
    const t = performance.now();
    this.pingSeq += 1;
    if (this.send({kind: 'ping', seq: this.pingSeq, t})) this.trips.sent(t);
  }

  /** @param {number} id */
  async probe(id) {
    const abort = new AbortController();
    this.probes.set(id, abort);
    try {
      const answer = await fetch('api/ping', {cache: 'no-store', signal: abort.signal});
      this.probeStatus = answer.ok ? 0 : answer.status;
      if (!answer.ok) throw new TypeError(`api/ping: ${answer.status}`);
      this.act(this.policy.answered(id, performance.now()));
    } catch (fault) {
      // AbortError: cancelled by us; TypeError: no answer. Both are as expected.
      if (!(fault instanceof TypeError || fault instanceof DOMException)) throw fault;
      this.policy.unanswered(id);
    } finally {
      this.probes.delete(id);
    }
  }

  open() {
    const socket = new WebSocket(address('ws/drive'));
    this.drive = socket;
    socket.onopen = () => {
      if (this.drive !== socket) return;
      this.policy.opened(performance.now());
      this.clock.reset();
      this.trips.reset();
      this.seen = {clockUs: 0, nonce: 0};
      socket.send(encode({kind: 'hello', v: VERSION, client: this.client, ...this.hello()}));
      if (this.pushedStop.waiting) {
        socket.send(encode({kind: 'estop'}));
        this.pushedStop.sent(this.pingSeq);
      }
      if (this.timers.length > 0 && this.videoId && !this.picturesCome) this.openVideo();
    };
    socket.onmessage = (event) => {
      if (this.drive === socket) this.receive(String(event.data));
    };
    socket.onclose = ({code}) => {
      if (this.drive !== socket) return;
      this.act(code === ELSEWHERE ? this.policy.park('elsewhere')
        : this.policy.failed(performance.now()));
    };
  }

  /** After /ws/drive: Chromium connects one socket a host at a time. */
  openVideo() {
    this.closeVideo();
    const socket = new WebSocket(address(`ws/video?id=${this.videoId}`));
    socket.binaryType = 'arraybuffer';
    this.video = socket;
    this.frameMs = performance.now();
    this.pictureMs = -Infinity;
    // Shows that this socket is ours; the name in the URL is no secret.
    socket.onopen = () => {
      socket.send(encode({kind: 'hello', v: VERSION, client: this.client}));
      if (this.fpsMost) this.requestFps(this.fpsMost);
    };
    socket.onmessage = (event) => {
      if (this.video !== socket || !(event.data instanceof ArrayBuffer)) return;
      this.arrived(event.data, 0);
    };
    socket.onclose = () => {
      if (this.video !== socket) return;
      this.video = null;
      setTimeout(() => {
        if (this.up && this.video === null && this.timers.length > 0) this.openVideo();
      }, VIDEO_AGAIN_MS);
    };
  }

  /** A picture came, by /ws/video (0) or /ws/copies (1). @param {ArrayBuffer} frame @param {0 | 1} way */
  arrived(frame, way) {
    this.frameMs = this.pictureMs = performance.now();
    this.policy.pictured(this.frameMs);
    const us = captureUs(frame);
    const ageMs = us === null ? null : this.clock.ageMs(us, this.frameMs);
    if (this.up && this.queue.arrived(ageMs, this.policy.rttMs, this.frameMs)) {
      this.openVideo();
      return;
    }
    if (!this.redundant) this.on.frame(frame);
    else for (const next of this.redundant.merge.take(frame, way)) this.on.frame(next);
  }

  closeVideo() {
    const video = this.video;
    this.video = null;
    video?.close();
    this.redundant?.close();
  }

  closeDrive() {
    const drive = this.drive;
    this.drive = null;
    drive?.close();
  }

  /** Where packets are lost /ws/drive may stand still while pictures come: they go on. */
  closeFailed() {
    this.closeDrive();
    if (this.state.kind === 'parked' || !this.picturesCome) this.closeVideo();
  }

  get picturesCome() {
    return this.video !== null && performance.now() - this.pictureMs < PICTURES_MS;
  }

  /** @param {string} text */
  receive(text) {
    const nowMs = performance.now();
    const message = readOrNull(text);
    const wasUp = this.up;
    this.policy.heard(nowMs);
    this.probeStatus = 0;
    if (!wasUp) {
      this.on.welcomed();
      this.ping();
      this.act([]);
    }
    if (!message) return;
    if (message.kind === 'welcome' && message.video !== this.videoId) {
      this.videoId = message.video;
      if (this.timers.length > 0) this.openVideo();
    }
    if (message.kind === 'state') {
      this.see(message);
      this.redundant?.state(message, nowMs);
    }
    if (message.kind === 'pong') {
      this.answered(message, nowMs);
      // A STOP goes by this socket alone: the other one's pongs do not show that it arrived.
      this.pushedStop.answered(message.seq);
      this.policy.measured(nowMs - message.t, nowMs);
    }
    this.on.message(message);
  }

  /** A text came by /ws/copies. @param {string} text */
  receiveCopy(text) {
    const message = readOrNull(text);
    if (this.up && message?.kind === 'pong') this.answered(message, performance.now());
  }

  /** A pong came, by either socket: only the first of its number, or of later ones, is measured.
   * @param {import('../../lib/types.js').Pong} pong @param {number} nowMs */
  answered(pong, nowMs) {
    this.see(pong);
    if (pong.seq <= this.pongSeq) return;
    this.pongSeq = pong.seq;
    this.clock.add(pong.t, nowMs, pong.clock_us);
    this.trips.answered(pong.t, nowMs);
  }

  /** @param {{clock_us: number, nonce: number}} message */
  see({clock_us: clockUs, nonce}) {
    if (clockUs >= this.seen.clockUs) this.seen = {clockUs, nonce};
  }
}

/**
 * The part of the way that fails: a browser that refuses sockets of https, a proxy that passes none,
 * a proxy that answers itself. Pure.
 * @param {{refused: boolean, status: number, secure: boolean}} seen
 * @returns {import('../types.js').LinkFault}
 */
export function faultOf({refused, status, secure}) {
  if (!refused && status === 0) return '';
  return status !== 0 ? 'status' : secure ? 'secure' : 'socket';
}

/** @param {string} text */
function readOrNull(text) {
  try {
    return parse(text);
  } catch (fault) {
    if (!(fault instanceof WireError)) throw fault;
    console.warn(fault.message);
    return null;
  }
}

/** The URL of a socket; like the page itself, it may be below a path of a proxy. @param {string} path */
export function address(path) {
  return new URL(path, location.href.replace(/^http/, 'ws')).href;
}

/** How long the page itself took: a first guess of the round trip. */
function navigationRttMs() {
  const [entry] = performance.getEntriesByType('navigation');
  if (!(entry instanceof PerformanceNavigationTiming)) return 0;
  return Math.max(0, entry.responseStart - entry.requestStart);
}
