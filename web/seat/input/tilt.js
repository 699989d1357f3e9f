/** Steering by tilting the phone, where the browser allows it (https, by permission). */

import {clamp, stick} from '../../lib/curves.js';

/** iOS asks for permission; others do not have the method. @typedef {{requestPermission?: () => Promise<'granted' | 'denied'>}} Asking */

export class Tilt {
  static get available() {
    return isSecureContext && typeof DeviceOrientationEvent !== 'undefined' &&
      matchMedia('(pointer: coarse)').matches;
  }

  /** @param {(steer: number) => void} set */
  constructor(set) {
    this.set = set;
    this.on = false;
    /** @type {number | null} */
    this.centre = null;
    this.last = 0;
    this.listener = (/** @type {DeviceOrientationEvent} */ event) => this.turned(event);
  }

  /**
   * Asks for permission, so call it from a push.
   * @returns {Promise<boolean>} whether it is on now
   */
  async start() {
    const asking = /** @type {Asking} */ (
      /** @type {unknown} */ (DeviceOrientationEvent));
    if (asking.requestPermission && await asking.requestPermission() !== 'granted') {
      return false;
    }
    this.on = true;
    this.centre = null;
    addEventListener('deviceorientation', this.listener);
    return true;
  }

  stop() {
    this.on = false;
    removeEventListener('deviceorientation', this.listener);
    this.set(0);
  }

  /** Takes the way the phone is held now as straight ahead. */
  centreHere() {
    this.centre = this.last;
  }

  /** Steers by how the phone is held. @param {DeviceOrientationEvent} event */
  turned({beta, gamma}) {
    if (beta === null || gamma === null) return;
    const angle = screen.orientation?.angle ?? 0;
    this.last = across(beta, gamma, angle);
    this.centre ??= this.last;
    this.set(tilt(beta, gamma, angle, this.centre));
  }
}

/**
 * Steering by tilt: 25 degrees from the centre are full steering; positive is left.
 * The screen's angle selects the sensor axis that runs across the driver's hands.
 * @param {number} beta degrees @param {number} gamma degrees
 * @param {number} angle the screen's: 0, 90, 180 or 270 @param {number} centre degrees
 */
export function tilt(beta, gamma, angle, centre) {
  return stick(clamp((centre - across(beta, gamma, angle)) / 25), 0.1);
}

/**
 * By how many degrees the right hand is lower, from where "up" is on the phone: the
 * angles themselves leap when the screen passes the upright (beta 5 becomes 175).
 * @param {number} beta @param {number} gamma @param {number} angle
 */
export function across(beta, gamma, angle) {
  const [b, g] = [beta, gamma].map((degrees) => (degrees * Math.PI) / 180);
  const low = angle % 180 === 90 ? Math.sin(b) : Math.cos(b) * Math.sin(g);
  const degrees = (Math.asin(clamp(low)) * 180) / Math.PI;
  return angle >= 180 ? -degrees : degrees;
}
