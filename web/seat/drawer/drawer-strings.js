/** The drawer's texts, from lang/; the first screen's are in strings.js. */

import {clauses, counted, listed, named, titled} from '../../lang/forms.js';
import {t, fill, joined, number, percent, said, unit} from '../../lang/words.js';
import {personName} from '../strings.js';

/** @import {Battery, Health, Range, State, Text, Welcome} from '../../lib/types.js' */

const metres = (/** @type {number} */ value) => unit(value, 'meter', 2);

export const DRAWER_STRINGS = {
  metres,
  /**
   * Why a sensor measures nothing, and since when.
   * @param {Range['state']} state @param {number | null} ageS
   */
  rangeFault: (state, ageS) => fill(t.rangeFault,
    {state: said(state) || t.nothingNew, since: DRAWER_STRINGS.lastSeen(ageS)}),
  rangeBad: (/** @type {string} */ why) => fill(t.rangeBad, {why}),
  rangeText: titled,
  /**
   * Rounded, as screen readers read it at every change.
   * @param {import('../hud/ranges.js').Alarm} alarm
   */
  guardText: ({back, metres: near, acts, stands}) => {
    if (near === null) {
      const away = back ? t.advice.goForward : t.advice.goBack;
      const advice = stands ? away : acts ? t.advice.slowed : t.advice.slowly;
      return fill(back ? t.nothingBehind : t.nothingAhead, {advice});
    }
    const {stops, slows, brake} = t.guardDoes;
    return fill(back ? t.wallBehind : t.wallAhead,
      {metres: unit(near, 'meter', 1), does: stands ? stops : acts ? slows : brake});
  },
  lastSeen: (/** @type {number | null} */ ageS) => {
    if (ageS === null) return t.neverSeen;
    if (ageS < 1) return t.justSeen;
    return fill(t.lastSeen, {time: ageS < 120
      ? fill(t.secondsShort, {seconds: number(Math.floor(ageS))}) : DRAWER_STRINGS.uptime(ageS)});
  },
  perSecond: (/** @type {number} */ fps) => number(fps, Number.isInteger(fps) ? 0 : 1),
  recorder: {
    on: (/** @type {string} */ time) => fill(t.recorder.on, {time}),
    /**
     * Room on the card: recording time at this rate of pictures, or its size for an unknown rate.
     * @param {number} mb @param {number} bytesPerS @param {boolean | undefined} station
     */
    room: (mb, bytesPerS, station) => fill(station ? t.recorder.roomStation : t.recorder.roomDrives, {
      much: bytesPerS ? DRAWER_STRINGS.uptime(mb * 1e6 / bytesPerS, {unitDisplay: 'long'})
        : DRAWER_STRINGS.room(mb),
    }),
    bad: (/** @type {Text | 'ok' | 'none'} */ state) => fill(t.recorder.bad, {reason: said(state)}),
  },
  /** Text of a refusal: by its code, or the car's English text. */
  carError: (/** @type {import('../../lib/types.js').CarError} */ error) => {
    const text = /** @type {Record<string, string>} */ (t.errors ?? {})[error.code];
    if (text) {
      const {value, limit, by, wait_s: wait} = error;
      return fill(text, {value, limit, name: personName(by), wait: number(wait)});
    }
    const value = error.value ? ` (${error.value}` + (error.limit ? `; ${error.limit})` : ')')
      : error.limit ? ` (${error.limit})` : '';
    const what = error.what[0].toUpperCase() + error.what.slice(1);
    return joined(`${what}${value}.`, error.next && fill(t.nextStep, {step: error.next}));
  },
  saved: (/** @type {string} */ name) => fill(t.marks.saved, {name}),
  rate: (/** @type {number} */ bitsPerS) => `${number(bitsPerS / 1e6, 1)}\u00a0Mbit/s`,
  upTo: (/** @type {number} */ value) => `0–${unit(value, 'millisecond')}`,
  share: (/** @type {number | null} */ value) => (value === null ? '–' : percent(value, 1)),
  weak: (/** @type {number} */ lost) => fill(t.weak, {lost: number(lost * 100)}),
  /** @param {'webcodecs' | 'mse' | 'none'} path @param {boolean} software */
  path: (path, software) => ({
    webcodecs: software ? 'WebCodecs (software)' : 'WebCodecs', mse: 'MSE (http)', none: t.noPath,
  })[path],
  limit: (/** @type {number} */ share) => percent(share),
  watchers: (/** @type {number} */ count) => counted(t.watchers, count),
  batteryText: (/** @type {Battery} */ {volts, amps, share, state}) => {
    const much = volts === null ? '' : fill(t.batteryFigures,
      {volts: number(volts, 2), amps: number(amps ?? 0, 1), share: percent(share ?? 0)});
    return listed([much, said(state)]);
  },
  fault: (/** @type {string} */ reason) => fill(t.fault, {reason}),
  celsius: (/** @type {number} */ value) => unit(value, 'celsius'),
  wifi: (/** @type {number} */ dbm, /** @type {number | null} */ mbps) =>
    `${number(dbm)}\u00a0dBm${mbps === null ? '' : `, ${number(mbps)}\u00a0Mbit/s`}`,
  room: (/** @type {number} */ mb) =>
    (mb < 1000 ? unit(mb, 'megabyte') : unit(mb / 1000, 'gigabyte', 1)),
  /** @param {number} seconds @param {Intl.NumberFormatOptions} [more] */
  uptime: (seconds, more) => {
    const minutes = Math.floor(seconds / 60);
    return minutes < 120 ? unit(minutes, 'minute', 0, more) : unit(Math.floor(minutes / 60), 'hour', 0, more);
  },
};

/**
 * Each key of this car and its function.
 * @param {Pick<Welcome, 'has_lights'> & Partial<Pick<Welcome, 'cameras' | 'features'>>} car
 * @returns {[string, string][]}
 */
export function keysOf({has_lights: lights, cameras = [], features = []}) {
  const {keys} = t;
  const looks = features.includes('servos');
  const pad = listed([keys.padDrive, lights ? keys.padLights : '', keys.padStop, looks ? keys.padLook : '']);
  /** @type {[string, string, boolean][]} */
  const rows = [
    [keys.moves, keys.drive, true], [keys.space, keys.stop, true], [looks ? 'O' : 'L', keys.lights, lights],
    ['I J K L', keys.look, looks], ['R', keys.lookAhead, looks],
    ['F', keys.full, true], ['P', keys.snapshot, true],
    ['M', keys.mark, true], ['C', keys.camera, cameras.length > 0], ['T', keys.talk, features.includes('intercom')],
    ['?', keys.keys, true], [keys.pad, pad, true],
  ];
  return rows.flatMap(([key, does, has]) =>
    (has ? [/** @type {[string, string]} */ ([key, does])] : []));
}

/**
 * Warning that the device is too slow, with advice.
 * @param {{intervalMs: number, decodeMs: number}} pace @param {boolean} secure is this https?
 */
export const paceText = ({intervalMs, decodeMs}, secure) => fill(t.tooSlow, {
  interval: unit(intervalMs, 'millisecond'), decode: unit(decodeMs, 'millisecond'),
  first: secure ? t.tooSlowClose : t.tooSlowSecure,
});

/**
 * Faults of the car's computer: the text of each known key, else the words of the car.
 * @param {Health} health
 */
export function computerFaults({faults, ...health}) {
  const {celsius, disk_free_mb: disk, memory_free_mb: memory, wifi_dbm: dbm} = health;
  return faults.map((fault) => fill(named(t.faults, fault.key) ?? said(fault), {
    celsius: DRAWER_STRINGS.celsius(celsius ?? 0), disk: DRAWER_STRINGS.room(disk ?? 0),
    memory: DRAWER_STRINGS.room(memory ?? 0), dbm: number(dbm ?? 0),
  }));
}

/** The faults in a row; null without a reading. @param {Health} health */
export function computerText(health) {
  return health.age_s === null ? null : clauses(computerFaults(health)) || t.fine;
}

/** The fault of servos that do not steer; '' for none. @param {State['parts']} parts */
export const servosText = (parts) =>
  said(/** @type {{state?: State['wheels']} | undefined} */ (parts?.servos)?.state);

/**
 * Rows of the known figures of the car's computer.
 * @param {Health} health @returns {[string, string][]}
 */
export function healthRows(health) {
  const {celsius, wifi_dbm: dbm, disk_free_mb: disk, memory_free_mb: memory, load} = health;
  const {uptime_s: uptime, wifi_mbps: mbps} = health;
  const names = t.health;
  /** @type {[string, string | null][]} */
  const rows = [
    [names.celsius, formatted(celsius, DRAWER_STRINGS.celsius)],
    [names.wifi, formatted(dbm, (value) => DRAWER_STRINGS.wifi(value, mbps ?? null))],
    [names.disk, formatted(disk, DRAWER_STRINGS.room)],
    [names.memory, formatted(memory, DRAWER_STRINGS.room)],
    [names.load, formatted(load, (value) => number(value, 2))],
    [names.uptime, formatted(uptime, DRAWER_STRINGS.uptime)],
  ];
  return rows.flatMap(([name, value]) =>
    (value === null ? [] : [/** @type {[string, string]} */ ([name, value])]));
}

/**
 * The words for a value; null for an unknown one.
 * @param {number | null | undefined} value @param {(value: number) => string} format
 */
function formatted(value, format) {
  return value === null || value === undefined ? null : format(value);
}
