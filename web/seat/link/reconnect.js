/**
 * When to give a link up and how to get it back. Pure: events and time in, acts out.
 * types.d.ts describes its states.
 *
 * Why: after an outage TCP's retransmission timer has doubled several times, so an old
 * socket speaks again seconds late. Only a new connection is there at once.
 */

const DEAD_MS = 300;
/** TCP may hold /ws/drive back, and a STOP with it, while /ws/video flows: each has a
 *  back-off of its own. */
const UNANSWERED_MS = 500;
/** A SYN without an answer goes out again after 1 s: five probes, a fifth of a second
 *  apart, and their SYNs leave no gap. Worst of 30 outages: 485 ms at 300, 449 at 250. */
const PROBE_EVERY_MS = 200;
const PROBE_GIVE_UP_MS = 2000;
const PROBES_MAX = 5;
/** Ticks may come this early or late; the probes keep their rhythm. */
const EARLY_MS = 5;
const LATE_MS = 50;
const OPEN_LEAST_MS = 1000;
const REFUSED_WAIT_MS = 2000;
const REFUSED_MOST = 3;
/** Only a page that slept has so long a gap between two ticks. */
const SLEPT_MS = 250;

/** @import {Act, LinkState, Probe} from '../types.js' */

/** Decides for one link. The sockets' owner runs the returned acts. */
export class Reconnect {
  /** @param {number} nowMs @param {number} rttMs a first guess of the round trip */
  constructor(nowMs, rttMs) {
    this.rttMs = rttMs;
    this.probeId = 0;
    /** Sockets that did not open, in a row, while probes were answered. */
    this.refusals = 0;
    this.tickMs = nowMs;
    this.lastProbeMs = -Infinity;
    /** @type {LinkState} */
    this.state = {kind: 'opening', deadlineMs: nowMs + this.timeoutMs, opened: false};
  }

  get timeoutMs() {
    return Math.max(OPEN_LEAST_MS, 4 * this.rttMs);
  }

  /** A message came on /ws/drive. @param {number} nowMs */
  heard(nowMs) {
    if (this.state.kind === 'up') this.state.heardMs = nowMs;
    else if (this.state.kind === 'opening') {
      this.refusals = 0;
      this.state = {kind: 'up', heardMs: nowMs, pongMs: nowMs};
    }
  }

  /** A picture came: it shows nothing about /ws/drive. @param {number} nowMs */
  pictured(nowMs) {
    if (this.state.kind === 'up') this.state.heardMs = nowMs;
  }

  /**
   * A pong came: both ways of /ws/drive are open.
   * @param {number} rttMs @param {number} nowMs
   */
  measured(rttMs, nowMs) {
    this.rttMs = rttMs;
    if (this.state.kind === 'up') this.state.pongMs = nowMs;
  }

  /** /ws/drive is open; its first message gets as long again. @param {number} nowMs */
  opened(nowMs) {
    if (this.state.kind === 'opening') {
      this.state = {
        kind: 'opening', deadlineMs: nowMs + this.timeoutMs, opened: true,
      };
    }
  }

  /** /ws/drive closed or would not open. @param {number} nowMs @returns {Act[]} */
  failed(nowMs) {
    if (this.state.kind === 'up') return this.lose(nowMs, 0);
    if (this.state.kind !== 'opening') return [];
    // A car that answers GETs but no socket is full or not ours: do not hammer at it.
    this.refusals += 1;
    return this.lose(nowMs, this.refused ? REFUSED_WAIT_MS : 0);
  }

  /** Does the car answer GETs, and no socket? */
  get refused() {
    return this.refusals >= REFUSED_MOST;
  }

  /** The car closed us for good. @param {string} why @returns {Act[]} */
  park(why) {
    const acts = this.cancelAll();
    this.state = {kind: 'parked', why};
    return [...acts, {do: 'close'}];
  }

  /** Reconnect now. @param {number} nowMs @returns {Act[]} */
  wake(nowMs) {
    return this.state.kind === 'parked' ? this.lose(nowMs, 0) : [];
  }

  /**
   * Call it every 50 ms or so. A page that slept (hidden, frozen, a blocked thread) heard
   * nothing because it did not listen: that time does not count.
   * @param {number} nowMs @returns {Act[]}
   */
  tick(nowMs) {
    const slept = nowMs - this.tickMs;
    this.tickMs = nowMs;
    const state = this.state;
    if (slept > SLEPT_MS) this.forgive(slept, nowMs);
    if (state.kind === 'up') {
      const unanswered = nowMs - state.pongMs > Math.max(UNANSWERED_MS, 4 * this.rttMs);
      return unanswered || nowMs - state.heardMs > DEAD_MS ? this.lose(nowMs, 0) : [];
    }
    if (state.kind === 'opening') {
      return nowMs > state.deadlineMs ? this.failed(nowMs) : [];
    }
    return state.kind === 'probing' ? this.probe(state, nowMs) : [];
  }

  /**
   * Moves the deadlines on by the sleep, during which sockets may have spoken.
   * @param {number} slept @param {number} nowMs
   */
  forgive(slept, nowMs) {
    const state = this.state;
    // Pings from before the sleep are answered within one round trip, or never.
    if (state.kind === 'up') {
      state.heardMs = Math.min(state.heardMs + slept, nowMs) + this.rttMs;
      state.pongMs = Math.min(state.pongMs + slept, nowMs) + this.rttMs;
    }
    if (state.kind === 'opening') {
      state.deadlineMs = Math.min(state.deadlineMs + slept, nowMs + this.timeoutMs);
    }
  }

  /**
   * A probe was answered: packets pass again.
   * @param {number} id @param {number} nowMs @returns {Act[]}
   */
  answered(id, nowMs) {
    if (this.state.kind !== 'probing') return [];
    const probe = this.state.inFlight.find((entry) => entry.id === id);
    if (!probe) return [];
    this.rttMs = nowMs - probe.sentMs;
    this.state.inFlight = this.state.inFlight.filter((entry) => entry !== probe);
    const acts = this.cancelAll();
    this.state = {kind: 'opening', deadlineMs: nowMs + this.timeoutMs, opened: false};
    return [...acts, {do: 'open'}];
  }

  /** A probe failed at once (connection refused). @param {number} id */
  unanswered(id) {
    if (this.state.kind !== 'probing') return;
    const {inFlight} = this.state;
    this.state.inFlight = inFlight.filter((entry) => entry.id !== id);
    if (this.state.inFlight.length < inFlight.length) this.refusals = 0;
  }

  /** @param {number} nowMs @param {number} waitMs @returns {Act[]} */
  lose(nowMs, waitMs) {
    const nextMs = Math.max(nowMs + waitMs, this.lastProbeMs + PROBE_EVERY_MS);
    const state = {
      kind: /** @type {const} */ ('probing'), sinceMs: nowMs, nextMs,
      inFlight: /** @type {Probe[]} */ ([]),
    };
    this.state = state;
    return [{do: 'close'}, ...this.probe(state, nowMs)];
  }

  /**
   * @param {Extract<LinkState, {kind: 'probing'}>} state @param {number} nowMs
   * @returns {Act[]}
   */
  probe(state, nowMs) {
    /** @type {Act[]} */
    const acts = state.inFlight
      .filter((entry) => nowMs - entry.sentMs >= PROBE_GIVE_UP_MS)
      .map((entry) => ({do: 'cancel', id: entry.id}));
    if (acts.length > 0) this.refusals = 0;
    state.inFlight = state.inFlight.filter((entry) => nowMs - entry.sentMs < PROBE_GIVE_UP_MS);
    if (nowMs + EARLY_MS >= state.nextMs && state.inFlight.length < PROBES_MAX) {
      this.probeId += 1;
      this.lastProbeMs = nowMs;
      state.nextMs = Math.max(state.nextMs, nowMs - LATE_MS) + PROBE_EVERY_MS;
      state.inFlight.push({id: this.probeId, sentMs: nowMs});
      acts.push({do: 'probe', id: this.probeId});
    }
    return acts;
  }

  /** @returns {Act[]} */
  cancelAll() {
    if (this.state.kind !== 'probing') return [];
    return this.state.inFlight.map((entry) => ({do: 'cancel', id: entry.id}));
  }
}
