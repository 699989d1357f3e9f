/** Reversing beeps: the nearer an obstacle behind the car, the faster; a steady tone where
 * the car has to stop; slow and long if nothing is measured. The gain of one tone is
 * scheduled ahead, so that no timer runs: without news from the car the beeps end. */

import {isFresh} from './ranges.js';

const FAR_M = 1.5;
const SLOW_S = 0.7;
const FAST_S = 0.12;
const PULSE_S = 0.06;
/** No reading behind: slower and longer than all other beeps. */
const UNKNOWN_S = 1.5;
const UNKNOWN_PULSE_S = 0.4;
const PLAN_S = 0.25;
const HALF_DEG = 45;
const LOUD = 0.08;
const TONE_HZ = 1000;

/**
 * Distance to the nearest obstacle behind; null without one, or without a rear sensor;
 * 'unknown' while no rear sensor measures. Pure.
 * @param {readonly import('../../lib/types.js').Range[]} ranges
 */
export function behindM(ranges) {
  const back = ranges.filter((range) => Math.abs(range.bearing_deg) >= 180 - HALF_DEG);
  const good = back.filter(isFresh);
  if (back.length > 0 && good.length === 0) return 'unknown';
  const nearest = Math.min(...good.map((range) => range.range_m ?? Infinity));
  return nearest < Infinity ? nearest : null;
}

/** Seconds from beep to beep; 0 is a steady tone, null is silence. Pure.
 * @param {number | null | 'unknown'} rangeM @param {number} stopM */
export function rhythm(rangeM, stopM) {
  if (rangeM === 'unknown') return UNKNOWN_S;
  if (rangeM === null || rangeM > FAR_M) return null;
  if (rangeM <= stopM) return 0;
  return FAST_S + ((SLOW_S - FAST_S) * (rangeM - stopM)) / Math.max(FAR_M - stopM, 0.01);
}

/** Start times of the beeps within the next PLAN_S, after one that began at `lastS`.
 * Pure. @param {number} lastS @param {number} everyS @param {number} nowS */
export function due(lastS, everyS, nowS) {
  const times = [];
  for (let at = Math.max(lastS + everyS, nowS); at < nowS + PLAN_S; at += everyS) times.push(at);
  return times;
}

export class Beeps {
  /** @param {(() => AudioContext) | null} make null: this browser has no sound */
  constructor(make = 'AudioContext' in globalThis ? () => new AudioContext() : null) {
    this.make = make;
    /** @type {{context: AudioContext, loudness: AudioParam} | null} */
    this.tone = null;
    this.lastS = -Infinity;
  }

  /**
   * Schedules the next beeps; call it with every state of the car.
   * @param {number | null} everyS from rhythm()
   */
  update(everyS) {
    if (everyS === null || !this.make) {
      this.hush();
      return;
    }
    this.tone ??= this.begin(this.make());
    const {context, loudness} = this.tone;
    // Browsers play no sound before the first touch or key.
    if (context.state === 'suspended') void context.resume();
    const nowS = context.currentTime;
    if (everyS === 0) {
      loudness.cancelScheduledValues(nowS);
      loudness.setValueAtTime(LOUD, nowS);
      loudness.setValueAtTime(0, nowS + PLAN_S);
      this.lastS = nowS;
      return;
    }
    const pulseS = everyS === UNKNOWN_S ? UNKNOWN_PULSE_S : PULSE_S;
    for (const atS of due(this.lastS, everyS, nowS)) {
      loudness.setValueAtTime(LOUD, atS);
      loudness.setValueAtTime(0, atS + pulseS);
      this.lastS = atS;
    }
  }

  /** Ends the beeps at once. */
  hush() {
    if (!this.tone || this.lastS === -Infinity) return;
    const {context, loudness} = this.tone;
    loudness.cancelScheduledValues(context.currentTime);
    loudness.setValueAtTime(0, context.currentTime);
    this.lastS = -Infinity;
  }

  /** @param {AudioContext} context */
  begin(context) {
    const tone = context.createOscillator();
    const loudness = context.createGain();
    tone.frequency.value = TONE_HZ;
    loudness.gain.value = 0;
    tone.connect(loudness).connect(context.destination);
    tone.start();
    const wake = () => void context.resume();
    addEventListener('pointerup', wake, {passive: true});
    addEventListener('keydown', wake);
    return {context, loudness: loudness.gain};
  }
}
