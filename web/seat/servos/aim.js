/** Wishes to turn the camera: keys, stick, gamepad and the phone itself. + is left or up. Pure. */

import {FEEL, clamp, ramp, stick} from '../../lib/curves.js';

/** @typedef {{pan: number, tilt: number}} Turn shares of the speed, or degrees */

/** @type {Readonly<Turn>} */
export const STILL = Object.freeze({pan: 0, tilt: 0});
/** Keys of the camera; those that drive are others. */
export const LOOK_KEYS = /** @type {Record<string, [keyof Turn, number]>} */ ({
  KeyJ: ['pan', 1], KeyL: ['pan', -1], KeyI: ['tilt', 1], KeyK: ['tilt', -1],
});
const DPAD = /** @type {[number, keyof Turn, number][]} */ ([
  [12, 'tilt', 1], [13, 'tilt', -1], [14, 'pan', 1], [15, 'pan', -1],
]);
const PRESSED_STICK = 11;

/** @param {Turn} turn */
export const isStill = ({pan, tilt}) => pan === 0 && tilt === 0;

/**
 * Of several inputs the one that asks for most wins, on each axis.
 * @param {Iterable<Turn>} turns @returns {Turn}
 */
export function strongest(turns) {
  const most = {...STILL};
  for (const turn of turns) {
    for (const axis of /** @type {const} */ (['pan', 'tilt'])) {
      if (Math.abs(turn[axis]) > Math.abs(most[axis])) most[axis] = turn[axis];
    }
  }
  return {pan: Math.round(most.pan * 1000) / 1000 + 0, tilt: Math.round(most.tilt * 1000) / 1000 + 0};
}

/**
 * The wish of held keys; it grows while they are held.
 * @param {ReadonlyMap<string, number>} held since when, by key @param {number} nowMs @returns {Turn}
 */
export function keyTurn(held, nowMs) {
  const turn = {...STILL};
  for (const [code, sinceMs] of held) {
    const [axis, way] = LOOK_KEYS[code] ?? ['pan', 0];
    turn[axis] = clamp(turn[axis] + way * ramp(nowMs - sinceMs, 0.3, 700));
  }
  return turn;
}

/**
 * The wish of a gamepad's right stick and d-pad, and whether its stick is pressed. A stick that
 * drives does not turn the camera.
 * @param {Pick<Gamepad, 'axes' | 'buttons' | 'mapping'>} pad @returns {Turn & {rest: boolean}}
 */
export function padTurn({axes, buttons, mapping}) {
  if (mapping !== 'standard') return {...STILL, rest: false};
  const down = (/** @type {number} */ index) => buttons[index]?.pressed === true;
  const free = (/** @type {string} */ of) => !Object.values(FEEL.pad).some((part) => part.startsWith(of));
  const turn = {
    pan: free('a2') ? -stick(axes[2] ?? 0, FEEL.dead) : 0,
    tilt: free('a3') ? -stick(axes[3] ?? 0, FEEL.dead) : 0,
  };
  for (const [index, axis, way] of DPAD) {
    if (down(index) && free(`b${index}`)) turn[axis] = way;
  }
  return {...turn, rest: down(PRESSED_STICK) && free(`b${PRESSED_STICK}`)};
}

/**
 * Where the back of a phone points, in degrees: `pan` counter-clockwise, `tilt` above the horizon.
 * From the angles of DeviceOrientationEvent (W3C: intrinsic rotations about Z, X', Y'').
 * @param {number} alpha @param {number} beta @param {number} gamma @returns {Turn}
 */
export function pointing(alpha, beta, gamma) {
  const [a, b, g] = [alpha, beta, gamma].map((degrees) => (degrees * Math.PI) / 180);
  const x = -Math.cos(a) * Math.sin(g) - Math.sin(a) * Math.sin(b) * Math.cos(g);
  const y = -Math.sin(a) * Math.sin(g) + Math.cos(a) * Math.sin(b) * Math.cos(g);
  const up = -Math.cos(b) * Math.cos(g);
  const degrees = 180 / Math.PI;
  return {pan: Math.atan2(y, x) * degrees, tilt: Math.asin(clamp(up)) * degrees};
}

/** The way from one direction to another, the short way round. @param {Turn} from @param {Turn} to @returns {Turn} */
export const turned = (from, to) =>
  ({pan: ((to.pan - from.pan + 540) % 360) - 180, tilt: to.tilt - from.tilt});
