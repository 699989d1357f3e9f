/** Gamepads: one drives (unless set otherwise by its triggers and left stick), the B of each stops. */

import {FEEL} from '../../lib/curves.js';
import {PadReading, choosePad, connectedPads, padName} from '../../lib/gamepads.js';

/** @import {Command, Wish} from '../../lib/types.js' */
/** @typedef {Pick<Gamepad, 'axes' | 'buttons' | 'id' | 'index' | 'mapping'>} Pad */

const LOOK_MS = 500;
const POLL_MS = 12;
/** @type {Readonly<Wish>} */
const NEUTRAL = {throttle: 0, steer: 0};

export class Gamepads {
  /**
   * @param {{set: (wish: Wish) => void, stop: () => void,
   *   command: (name: Command) => void, came: (name: string) => void, gone: () => void,
   *   used: () => void, look?: (pad: Pad) => void, focused?: () => boolean, now?: () => number}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.focused = parts.focused ?? (() => document.hasFocus());
    this.now = parts.now ?? (() => performance.now());
    /** By the index of the gamepad. @type {Map<number, PadReading>} */
    this.readings = new Map();
    /** Index of the one that drives; -1: none. */
    this.driving = -1;
    this.timer = 0;
  }

  /** @param {Window} window */
  listen(window) {
    // A hidden page does not begin to look because a gamepad came.
    const look = () => (this.timer ? this.look() : undefined);
    window.addEventListener('gamepadconnected', look);
    window.addEventListener('gamepaddisconnected', look);
  }

  awake() {
    if (!this.timer) this.look();
  }

  asleep() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** Reads the gamepads, and again soon while one is there. */
  look() {
    clearTimeout(this.timer);
    const pads = connectedPads();
    this.read(pads);
    this.timer = Number(setTimeout(() => this.look(), pads.length ? POLL_MS : LOOK_MS));
  }

  /** @param {Pad[]} pads all that are connected */
  read(pads) {
    const nowMs = this.now();
    this.forget(pads);
    const read = new Map(pads.map((pad) => [pad.index, this.readingOf(pad).read(pad, nowMs)]));
    this.choose(pads);
    if ([...read.values()].some(({stop}) => stop)) this.parts.stop();
    if (!FEEL.learning) read.get(this.driving)?.commands.forEach(this.parts.command);
    const reading = this.readings.get(this.driving);
    if (!reading) return;
    if (FEEL.learning) reading.release();
    // Unlike keys, sticks reach a page without focus (another game).
    const wish = reading.counted(!FEEL.learning && this.focused());
    if (wish.throttle !== 0 || wish.steer !== 0) this.parts.used();
    this.parts.set(wish);
    const pad = pads.find(({index}) => index === this.driving);
    if (pad && !FEEL.learning && this.focused()) this.parts.look?.(pad);
  }

  /** @param {Pad} pad */
  readingOf({id, index}) {
    const reading = this.readings.get(index) ?? new PadReading(id);
    this.readings.set(index, reading);
    return reading;
  }

  /** Forgets the gamepads that went away; the car stops without the one that drove. @param {Pad[]} pads */
  forget(pads) {
    for (const [index, {id}] of this.readings) {
      if (pads.some((pad) => pad.index === index && pad.id === id)) continue;
      this.readings.delete(index);
      if (index !== this.driving) continue;
      this.driving = -1;
      this.parts.set(NEUTRAL);
      this.parts.gone();
    }
  }

  /** @param {Pad[]} pads */
  choose(pads) {
    const of = (/** @type {Pad | undefined} */ pad) => this.readings.get(pad?.index ?? -1);
    const current = pads.find(({index}) => index === this.driving);
    const {throttle, steer} = of(current)?.counted(false) ?? NEUTRAL;
    const pad = choosePad(pads, current, (one) => of(one)?.moves === true, throttle !== 0 || steer !== 0);
    if (!pad || pad === current) return;
    this.driving = pad.index;
    // With its trigger down it must rest first.
    of(pad)?.release();
    this.parts.set(NEUTRAL);
    this.parts.came(padName(pad.id));
  }

  release() {
    for (const reading of this.readings.values()) reading.release();
  }
}
