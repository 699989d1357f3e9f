/** Requests to the car: see calibration/api.py. */

import {askJson} from '../lib/http.js';

/**
 * @typedef {boolean | number | number[]} Value
 * @typedef {{key: string, value: Value, own: Value, least: number | null, most: number | null}} CalibratedValue
 * @typedef {{utc_s: number, what: string, values: Record<string, Value>, before: number}} Change
 * @typedef {{values: CalibratedValue[], steps: {kind: string, of: string}[], changes: Change[],
 *   limit: number, now: number, undoable: boolean, faults: import('../lib/types.js').Text[], doubts: string[]}} All
 * @typedef {{throttle: number, mps: number}} SpeedRun
 * @typedef {{way_m: number, aside_cm: number}} StraightRun
 * @typedef {{cause: string, by: string, ahead?: boolean, range_m?: number | null}} HeldBack
 * @typedef {{kind: string, of: string, phase: string, wish: import('../lib/types.js').Wish,
 *   found: Record<string, Value>, moves: boolean, held_back: HeldBack | null, fault?: string,
 *   duty?: number, by?: string, offset_m?: number | null, expected_v?: number | null,
 *   words?: string[], runs?: (SpeedRun | StraightRun)[], setting?: number, side?: string,
 *   centre_us?: number, left_deg?: number, right_deg?: number, throttle?: number,
 *   shares?: Record<string, number>, range_m?: number | null, target_m?: number, near?: boolean,
 *   volts?: number | null, pulse_us?: number, ends_us?: [number, number], ohm?: number, needs_ohm?: number, watts?: number}} Step
 */

/** @param {string} path @param {string} [method] */
const ask = (path, method = 'GET') => askJson(`api/calibration${path}`, {method});

/** @param {string} path @param {string[][]} [query] */
const post = (path, query = []) => ask(`/${path}?${new URLSearchParams(query)}`, 'POST');

export const API = {
  /** @returns {Promise<All>} */
  all: () => ask(''),
  /** @returns {Promise<Step | null>} */
  step: () => ask('/step'),
  /** @param {string} kind @param {string} of @returns {Promise<Step>} */
  begin: (kind, of) => post('begin', [['step', kind], ['of', of]]),
  /** @param {string} word @param {number[]} figures @returns {Promise<Step>} */
  say: (word, figures) =>
    post('say', [['word', word], ...figures.map((value) => ['figure', String(value)])]),
  /** @returns {Promise<All>} */
  keep: () => post('keep'),
  end: () => post('end'),
  /** @returns {Promise<All>} */
  undo: () => post('undo'),
  /** @param {string} key @param {Value} value @returns {Promise<All>} */
  set: (key, value) => post('set', [['key', key], ['value', JSON.stringify(value)]]),
};
