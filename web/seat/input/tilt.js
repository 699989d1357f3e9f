/** Steering by tilting the phone, where the browser allows it (https, by permission). */

import {across, tilt} from '../../lib/curves.js';

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
