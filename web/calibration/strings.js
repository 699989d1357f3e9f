/** Texts of the calibration, from lang/. */

import {dates, exact, listed, named} from '../lang/forms.js';
import {t, fill, number, percent, unit} from '../lang/words.js';

/** @import {Step, SpeedRun, StraightRun, Value} from './api.js' */

const part = (/** @type {string} */ name) =>
  named(t.calibration.parts, name) ?? fill(t.calibration.sensor, {name});
const upper = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);
const when = dates({dateStyle: 'medium', timeStyle: 'short'});

export const STRINGS = {
  stepTitle: (/** @type {string} */ kind, /** @type {string} */ name) =>
    fill(named(t.calibration.titles, kind) ?? kind, {part: part(name)}),
  phase: (/** @type {Step} */ {kind, phase, fault = '', offset_m: off, volts, expected_v: expected}) => {
    if (phase === 'failed') return fill(t.calibration.failed, {fault});
    const phases = /** @type {Record<string, object>} */ (t.calibration.phases);
    return fill(named(phases[kind] ?? {}, phase) ?? phase, {
      off: unit((off ?? 0) * 100, 'centimeter', 1), volts: number(volts ?? 0, 2), expected: number(expected ?? 0, 2),
    });
  },
  when: (/** @type {number} */ utcS) => when(utcS * 1000),
  own: (/** @type {Value} */ value) => fill(t.calibration.own, {value: STRINGS.value(value)}),
  answer: (/** @type {string} */ word) => named(t.calibration.answers, word) ?? word,
  throttle: (/** @type {number} */ share) =>
    fill(share < 0 ? t.back : t.forward, {much: percent(Math.abs(share))}),
  duty: (/** @type {Step} */ {duty = 0, by}) => {
    const who = by ? ` (${named(t.calibration.by, by) ?? t.calibration.by.you})` : '';
    return fill(t.calibration.duty, {duty: number(duty, 3), who});
  },
  /**
   * Cause that keeps the car from the step's wish; '' for a stop, which the seat's card shows.
   * @param {import('./api.js').HeldBack} back
   */
  heldBack: (back) => named(t.calibration.heldBack, back.cause) ?? '',
  sees: (/** @type {number | null | undefined} */ m) => (m == null ? t.calibration.seesNothing
    : fill(t.calibration.sees, {metres: unit(m, 'meter', 3)})),
  volts: (/** @type {number | null | undefined} */ v) =>
    (v == null ? '' : fill(t.calibration.volts, {volts: number(v, 2)})),
  run: (/** @type {SpeedRun | StraightRun} */ run) => ('mps' in run
    ? `${STRINGS.throttle(run.throttle)}: ${number(run.mps, 2)} m/s`
    : `${unit(run.way_m, 'meter', 2)}: ${unit(Math.abs(run.aside_cm), 'centimeter', 1)} `
      + (run.aside_cm < 0 ? t.calibration.toRight : t.calibration.toLeft)),
  /** Speed limits of the presets, if there are any. @param {Record<string, number>} shares */
  shares: (shares) => {
    const texts = Object.entries(shares).map(([name, share]) =>
      fill(name === 'child' ? t.calibration.child : t.calibration.smallChild, {much: percent(share)}));
    return texts.length ? fill(t.calibration.shares, {shares: listed(texts)}) : '';
  },
  servo: (/** @type {Step} */ {centre_us: us = 0, left_deg: left = 0, right_deg: right = 0}) =>
    fill(t.calibration.servo, {centre: number(us), left: number(left), right: number(right)}),
  setting: (/** @type {Step} */ {setting, found}) => {
    const [key] = Object.keys(found);
    return key === undefined || setting === undefined ? '' : `${STRINGS.name(key)}: ${STRINGS.value(setting)}.`;
  },
  value: (/** @type {Value} */ value) => {
    if (typeof value === 'boolean') return value ? t.calibration.yes : t.calibration.no;
    if (Array.isArray(value)) return listed(value.map((share) => percent(share)));
    return exact(Math.round(value * 1000) / 1000);
  },
  /** "motors.drive.dead_band" in words. @param {string} key */
  name: (key) => {
    const [section = '', ...rest] = key.split('.');
    const last = rest.pop() ?? '';
    const name = section === 'motors' || section === 'sensors' ? rest.at(-1) : undefined;
    const where = section === 'battery' ? `${t.batteryName}: `
      : name === undefined ? '' : `${upper(part(name))}: `;
    return upper(`${where}${named(t.calibration.names, last) ?? last}`);
  },
  /** Label of a change: "dead_band drive", or the key of a value. @param {string} what */
  change: (what) => {
    const [kind = '', name = ''] = what.split(' ');
    if (what === 'damaged') return t.calibration.damaged;
    return kind in t.calibration.titles ? STRINGS.stepTitle(kind, name) : STRINGS.name(what);
  },
};
