/** Response curves: from thumbs, keys and sticks to -1..1. Pure. */

/** @param {number} value */
export const clamp = (value) => Math.max(-1, Math.min(1, value));

/**
 * A stick's value: zero in the dead zone, fine control at low speed, 1 at the end.
 * A mix of linear and cubic, so that half way out asks for a third.
 * @param {number} way -1..1 @param {number} dead size of the dead zone
 */
export function stick(way, dead = 0.08) {
  const size = Math.min(1, Math.abs(way));
  if (!(size > dead)) return 0;
  const rest = (size - dead) / (1 - dead);
  return Math.sign(way) * (0.45 * rest + 0.55 * rest ** 3);
}

/**
 * A key's value: it has only down and up, so time is its travel.
 * @param {number} heldMs @param {number} first value at once @param {number} fullMs time until 1
 */
export function ramp(heldMs, first, fullMs) {
  const share = Math.min(1, Math.max(0, heldMs / fullMs));
  return first + (1 - first) * share;
}

/** Throttle for a key held so long. @param {number} heldMs */
export const throttleRamp = (heldMs) => ramp(heldMs, 0.35, 900);
/** Steering for a key held so long. @param {number} heldMs */
export const steerRamp = (heldMs) => ramp(heldMs, 0.45, 300);

/**
 * Steering by tilt: 25 degrees from the centre are full steering; positive is left.
 * The screen's angle says which of the sensor's axes runs across the driver's hands.
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
