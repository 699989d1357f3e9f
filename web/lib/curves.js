/** Response curves: from thumbs, keys and sticks to -1..1. Pure. */

/**
 * How sticks feel on this device; sticks.js sets it. `expo` is the share of the cubic, `dead` the
 * dead zone of a gamepad's axes. Gamepad mapping: "b7" is a button, "a0+" half an axis. While the
 * mapping is being set (`learning`), a gamepad drives nothing. `use` is the id of the gamepad that
 * a person chose; '' is the one that moves.
 */
export const FEEL = {
  expo: 0.55, dead: 0.12, leftHanded: false, learning: false, use: '',
  pad: {forward: 'b7', back: 'b6', left: 'a0-', right: 'a0+', lights: 'b0', stop: 'b1',
    snapshot: 'b2', mark: 'b3'},
};

/** Loads the valid parts of the saved settings. @param {string} text */
export function feel(text) {
  try {
    const {expo, dead, leftHanded, use, pad} = JSON.parse(text || '{}');
    if (expo >= 0 && expo <= 1) FEEL.expo = expo;
    if (dead >= 0 && dead <= 0.5) FEEL.dead = dead;
    FEEL.leftHanded = leftHanded === true;
    FEEL.use = typeof use === 'string' ? use : '';
    for (const role of /** @type {(keyof typeof FEEL.pad)[]} */ (Object.keys(FEEL.pad))) {
      if (/^(b\d{1,2}|a\d{1,2}[+-])$/.test(pad?.[role])) FEEL.pad[role] = pad[role];
    }
  } catch {
    // Not ours: as it was.
  }
}

/**
 * How far a button or the half of an axis is pushed, 0..1, from where the axis rests. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad @param {string} of as in FEEL.pad
 * @param {{low: number, high: number}[]} [rests] where each axis rests
 */
export function pushed(pad, of, rests = []) {
  const index = parseInt(of.slice(1), 10);
  if (of[0] === 'b') return pad.buttons[index]?.value ?? 0;
  const value = pad.axes[index] ?? 0;
  const {low, high} = rests[index] ?? {low: 0, high: 0};
  const beyond = of.endsWith('-') ? (low - value) / (1 + low) : (value - high) / (1 - high);
  return Math.max(0, beyond);
}

/** @param {number} value */
export const clamp = (value) => Math.max(-1, Math.min(1, value));

/**
 * A stick's value: zero in the dead zone, fine control at low speed, 1 at the end.
 * A mix of linear and cubic: unless set otherwise half way out asks for a third.
 * @param {number} deflection -1..1 @param {number} dead size of the dead zone
 */
export function stick(deflection, dead = 0.08) {
  const size = Math.min(1, Math.abs(deflection));
  if (!(size > dead)) return 0;
  const rest = (size - dead) / (1 - dead);
  return Math.sign(deflection) * ((1 - FEEL.expo) * rest + FEEL.expo * rest ** 3);
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
