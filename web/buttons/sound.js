/** A tone for each button, and two jingles, by WebAudio; silent before the first touch. */

import {saved} from '../lib/storage.js';

/** Hz. A pentatonic scale: all notes sound well together. */
const TONES = [261.6, 329.6, 392, 440, 523.3, 587.3];
const RINGS_S = 0.6;
const QUIET = 0.0001;
/** @type {Record<string, [number, number][]>} Hz, s after the start */
const JINGLES = {
  cheer: [[523.3, 0.35], [659.3, 0.5], [784, 0.65]],
  sad: [[311.1, 0], [233.1, 0.35]],
};

export class Sound {
  constructor() {
    /** @type {AudioContext | null} */
    this.context = null;
    this.on = saved.get('buttons-sound') !== 'off';
  }

  /** Starts sound; call it from an event handler, as browsers ask for a touch. */
  wake() {
    if (!this.on || typeof AudioContext === 'undefined') return;
    this.context ??= new AudioContext({latencyHint: 'interactive'});
    if (this.context.state !== 'running') void this.context.resume();
  }

  toggle() {
    this.on = !this.on;
    saved.set('buttons-sound', this.on ? '' : 'off');
    this.wake();
  }

  /** @param {number} button @param {number} volume 0 to 1 */
  tone(button, volume) {
    this.play(TONES[button % TONES.length], 0, volume);
  }

  /** @param {'cheer' | 'sad'} kind */
  jingle(kind) {
    for (const [hz, afterS] of JINGLES[kind]) this.play(hz, afterS, 0.6);
  }

  /** @param {number} hz @param {number} afterS @param {number} volume */
  play(hz, afterS, volume) {
    const {context} = this;
    if (!this.on || context?.state !== 'running') return;
    const startS = context.currentTime + afterS;
    const tone = context.createOscillator();
    const gain = context.createGain();
    tone.type = 'triangle';
    tone.frequency.value = hz;
    gain.gain.setValueAtTime(0.3 * volume, startS);
    gain.gain.exponentialRampToValueAtTime(QUIET, startS + RINGS_S);
    tone.connect(gain).connect(context.destination);
    tone.start(startS);
    tone.stop(startS + RINGS_S);
  }
}
