/** Top speeds that a grown-up chooses among, in m/s: the speed limit for each follows from
 * the car's measured speeds. They load when the grown-ups' part is open. */

import {t, fill, number} from '../lang/words.js';
import {make, setAttr} from '../lib/dom.js';
import {API} from './api.js';
import {actionButton, row} from './fields.js';

/** @import {All} from './api.js' */

/** Less is no limit but a standstill. */
const LEAST = 0.05;
/** The car keeps a limit as it was sent. */
const SAME = 0.002;

/**
 * The share of full throttle that gives a speed, and no more than the profile's limit. Pure.
 * @param {number} mps @param {number} least speed just over the dead band
 * @param {number} top speed at full throttle @param {number} limit
 */
export function shareOf(mps, least, top, limit) {
  const share = top > least ? (mps - least) / (top - least) : 1;
  return Math.min(limit, Math.max(LEAST, Math.round(share * 1000) / 1000));
}

/** Label and speed limit of each. Pure. @param {All} all @returns {[string, number][]} */
export function presets({values, limit}) {
  const of = (/** @type {string} */ key) => Number(values.find((value) => value.key === key)?.value ?? 0);
  const [least, top] = [of('speeds.least_mps'), of('guard.top_mps')];
  const [small, child] = [of('speeds.small_child_mps'), of('speeds.child_mps')];
  return [
    [fill(t.presets.smallChild, {mps: number(small, 1)}), shareOf(small, least, top, limit)],
    [fill(t.presets.child, {mps: number(child, 1)}), shareOf(child, least, top, limit)], [t.presets.grownUp, limit],
  ];
}

/**
 * @param {HTMLElement} place @param {(share: number) => void} set
 * @returns {Promise<(share: number) => void>} marks the one in force
 */
export async function open(place, set) {
  const made = presets(await API.all());
  const buttons = made.map(([label, share], index) =>
    actionButton(label, () => set(share), `preset-${index}`));
  const mark = (/** @type {number} */ limit) => buttons.forEach((one, index) =>
    setAttr(one, 'aria-pressed', String(Math.abs(made[index][1] - limit) < SAME)));
  place.replaceChildren(make('span', t.presets.title), row(buttons));
  return mark;
}
