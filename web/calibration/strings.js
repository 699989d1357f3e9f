/** Texts of the calibration, from lang/. */

import {counted, dates, exact, listed, named, titled} from '../lang/forms.js';
import {t, fill, joined, number, percent, unit} from '../lang/words.js';

/** @import {Step, SpeedRun, StraightRun, Value} from './api.js' */

const part = (/** @type {string} */ name) =>
  named(t.calibration.parts, name) ?? fill(t.calibration.sensor, {name});
const upper = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);
/** A value with its unit, which the end of its key names. @param {string} key @param {Value} value */
function amount(key, value) {
  if (typeof value !== 'number') return STRINGS.value(value);
  if (key.endsWith('_mps')) return unit(value, 'meter-per-second', 2);
  if (key.endsWith('_deg')) return unit(value, 'degree', 1, {unitDisplay: 'narrow'});
  if (key.endsWith('_v')) return `${number(value, 2)}\u00a0V`;
  if (key === 'offset_m') return unit(value * 100, 'centimeter', 1);
  return key.endsWith('_us') ? `${number(value)} µs` : percent(value, 1);
}
const when = dates({dateStyle: 'medium', timeStyle: 'short'});

export const STRINGS = {
  stepTitle: (/** @type {string} */ kind, /** @type {string} */ name) =>
    fill(named(t.calibration.titles, kind) ?? kind, {part: part(name)}),
  start: (/** @type {number} */ count) => counted(t.calibration.start, count),
  resume: (/** @type {number} */ at, /** @type {number} */ count) =>
    fill(t.calibration.resume, {at: number(at + 1), count: number(count)}),
  place: (/** @type {number} */ at, /** @type {number} */ count) =>
    fill(t.calibration.place, {at: number(at + 1), count: number(count)}),
  /** @param {Step} step @param {string} [screen] a question among those of the phase */
  phase: ({kind, phase, fault = '', offset_m: off, volts, expected_v: expected, target_m: target, ohm, needs_ohm: needs, watts}, screen = phase) => {
    if (phase === 'failed') return fill(t.calibration.failed, {fault});
    const phases = /** @type {Record<string, object>} */ (t.calibration.phases);
    return fill(named(phases[kind] ?? {}, screen) ?? phase, {
      target: unit(target ?? 0, 'meter', 2),
      off: unit((off ?? 0) * 100, 'centimeter', 1), volts: number(volts ?? 0, 2), expected: number(expected ?? 0, 2),
      ohm: number(ohm ?? 0, 1), needs: number(needs ?? 0, 1), watts: number(watts ?? 0),
    });
  },
  when: (/** @type {number} */ utcS) => when(utcS * 1000),
  own: (/** @type {Value} */ value) => fill(t.calibration.own, {value: STRINGS.value(value)}),
  answer: (/** @type {string} */ word) => named(t.calibration.answers, word) ?? word,
  throttle: (/** @type {number} */ share) =>
    fill(share < 0 ? t.back : t.forward, {much: percent(Math.abs(share))}),
  duty: (/** @type {Step} */ {duty = 0, by}) => {
    const power = percent(duty, 1);
    return by ? fill(t.calibration.powerBy, {power, who: named(t.calibration.by, by) ?? t.calibration.by.you})
      : fill(t.calibration.power, {power});
  },
  /** @param {Step} step of an ESC */
  pulse: ({pulse_us: us = 0, by, ends_us: ends}) => joined(
    fill(t.calibration.pulse, {pulse: amount('_us', us)}),
    by ? named(t.calibration.by, by) ?? '' : '',
    ends ? fill(t.calibration.pulseEnds, {low: amount('_us', Math.min(...ends)), high: amount('_us', Math.max(...ends))}) : ''),
  /**
   * Cause that keeps the car from the step's wish; '' for a stop, which the seat's card shows.
   * @param {import('./api.js').HeldBack} back
   */
  heldBack: ({cause, ahead, range_m: range}) => {
    const {guardAhead, guardBack} = t.calibration.heldBack;
    if (cause !== 'guard' || range == null) return named(t.calibration.heldBack, cause) ?? '';
    return fill(ahead ? guardAhead : guardBack, {metres: unit(range, 'meter', 2)});
  },
  /** Reason for which the tape cannot be read yet. @param {Step} step */
  waits: ({target_m: target = 0}) => fill(t.calibration.waits, {target: unit(target, 'meter', 2)}),
  sees: (/** @type {number | null | undefined} */ m) => (m == null ? t.calibration.seesNothing
    : fill(t.calibration.sees, {metres: unit(m, 'meter', 3)})),
  volts: (/** @type {number | null | undefined} */ v) =>
    (v == null ? '' : fill(t.calibration.volts, {volts: number(v, 2)})),
  run: (/** @type {SpeedRun | StraightRun} */ run) => ('mps' in run
    ? titled(STRINGS.throttle(run.throttle), unit(run.mps, 'meter-per-second', 2))
    : titled(unit(run.way_m, 'meter', 2), `${unit(Math.abs(run.aside_cm), 'centimeter', 1)} ${
      run.aside_cm < 0 ? t.calibration.toRight : t.calibration.toLeft}`)),
  /** Speed limits of the presets, if there are any. @param {Record<string, number>} shares */
  shares: (shares) => {
    const texts = Object.entries(shares).map(([name, share]) =>
      fill(name === 'child' ? t.calibration.child : t.calibration.smallChild, {much: percent(share)}));
    return texts.length ? fill(t.calibration.shares, {shares: listed(texts, '、')}) : '';
  },
  /** @param {Step} step @param {string} side that the question is about */
  servo: ({centre_us: us = 0, left_deg: left = 0, right_deg: right = 0}, side) =>
    (side === 'centre' ? STRINGS.result('centre_us', us)
      : STRINGS.result(`${side}_deg`, side === 'left' ? left : right)),
  setting: (/** @type {Step} */ {setting, found}) => {
    const [key] = Object.keys(found);
    return key === undefined || setting === undefined ? '' : STRINGS.result(key, setting);
  },
  /** "Turns at 14 % of full power". @param {string} key @param {Value} value */
  result: (key, value) => {
    const last = key.split('.').pop() ?? '';
    return fill(named(t.calibration.results, last) ?? `${STRINGS.name(key)}: {value}`, {value: amount(last, value)});
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
