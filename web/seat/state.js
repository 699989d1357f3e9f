
/**
 * True if this page can move the car now; otherwise sticks and held buttons are dimmed.
 * @param {Situation} situation @param {boolean} driving at the wheel, and the link is up
 */
export const canMove = ({kind}, driving) =>
  driving && ['camera', 'encoder', 'coding', 'battery', 'ready', 'driving'].includes(kind);
/**
 * The page's situation: one of these, never a mix of flags. Pure.
 *
 * `situationOf` checks in order of urgency.
 */

import {said} from '../lang/words.js';
import {OLD_MS} from '../video/video.js';

/** @import {State} from '../lib/types.js' */
/** @import {LinkGrade, Page, Situation} from './types.js' */

/** @param {Page} page @returns {Situation} */
export function situationOf(page) {
  const {link, state, welcome, stopWaits, linkFault: fault} = page;
  if (link.kind === 'parked') return {kind: 'parked'};
  if (!state || !welcome) return {kind: 'connecting', stopWaits, fault};
  const driving = state.role === 'driver';
  if (link.kind !== 'up') return {kind: 'lost', sinceMs: page.lostMs, driving, stopWaits, fault};
  const {stop} = state;
  // The car calls a late link "silence"; this card gives the remedy.
  const holds = stop !== null && !['handover', 'silence'].includes(stop.cause);
  if (driving && page.lateMs !== null && !holds) return {kind: 'late', ms: page.lateMs, limitMs: mostRttMs(welcome)};
  // A handover is how every turn at the wheel begins, and no alarm.
  if (stop && stop.cause !== 'handover') {
    const mayResume = stop.clears === 'grown_up' ? state.grown_up
      : stop.clears === 'resume' && (driving || state.grown_up);
    const byUs = page.pushedStop && stop.cause.startsWith('estop');
    const leads = mayResume ? null : wayToResume(stop, state, driving);
    return {kind: 'stopped', stop, driving, byUs, mayResume, leads, silenceMs: welcome.silence_ms};
  }
  const [wheels, camera] = [said(state.wheels), said(state.camera)];
  if (wheels) return {kind: 'wheels', words: wheels};
  if (camera) return {kind: 'camera', words: camera};
  if (page.pictureOld) return {kind: 'camera', words: said(state.camera_warning)};
  if (page.takenBy !== null && !driving) return {kind: 'taken', by: page.takenBy, free: state.seat_free};
  if (!driving && !state.may_drive) return {kind: 'locked'};
  if (!driving) return {kind: 'watching', driver: state.driver, free: state.seat_free};
  const {wishing} = page;
  const limited = state.reason === 'limited';
  // The shorter wait comes first: let go, wait for a picture.
  const sooner = wishing && (stop || limited);
  if (state.battery?.low && !sooner) return {kind: 'battery', wishing};
  if (state.encoder_hangs && !wishing) return {kind: 'encoder'};
  if (state.camera_warning && !wishing) return {kind: 'coding', words: said(state.camera_warning)};
  if (stop || !wishing) return {kind: 'ready', letGo: stop !== null && wishing};
  return {kind: 'driving', limited};
}

/** Time between two messages of the car that a wish may answer. */
const ANSWERS_MS = 100;
/**
 * The longest round trip that the car accepts: a wish answers a message up to `late_ms` old,
 * which arrived up to ANSWERS_MS ago.
 * @param {import('../lib/types.js').Welcome} welcome
 */
export const mostRttMs = ({late_ms: lateMs}) => lateMs - ANSWERS_MS;

/** @param {State | null} state */
export const hasNoCamera = (state) => state?.camera === 'none';

/**
 * The button that leads to "Resume" on a page without that button: a code, the wheel, or none.
 * @param {import('../lib/types.js').Stop} stop @param {State} state @param {boolean} driving
 * @returns {'code' | 'take' | null}
 */
function wayToResume(stop, state, driving) {
  if (stop.clears === 'grown_up') return driving || !state.may_drive ? 'code' : null;
  if (driving || !state.seat_free) return null;
  return state.may_drive ? 'take' : 'code';
}

/**
 * The car's last state when there is no link: each measurement has aged by `sinceS`.
 * @param {State} state @param {number} sinceS @param {string} why
 * @returns {State}
 */
export function aged(state, sinceS, why) {
  /** @param {number | null} [age] */
  const old = (age = null) => ({age_s: (age ?? 0) + sinceS, state: {key: '', english: why, values: {}}});
  const {battery, ranges} = state;
  return {
    ...state, guard: null, battery: battery ? {...battery, ...old(battery.age_s)} : null,
    ranges: ranges?.map((range) => ({...range, ...old(range.age_s)})),
  };
}

/**
 * How good the link is. good: a driver notices no delay; slow: drive slowly.
 * @param {boolean} up @param {number | null} ageMs of the picture; null before the first
 * @param {number | null} pictureMs @param {number | null} linkMs
 * @param {boolean} weak Wi-Fi that loses packets @returns {LinkGrade}
 */
export function gradeOf(up, ageMs, pictureMs, linkMs, weak) {
  if (!up) return 'none';
  const slow = weak || (ageMs ?? 0) > OLD_MS || (pictureMs ?? 0) > 150 || (linkMs ?? 0) > 80;
  return slow ? 'slow' : 'good';
}

/**
 * Name of the driver who took the wheel between two states, '' if unknown, or null.
 * @param {State | null} before
 * @param {State} now @param {boolean} released by ourselves
 * @returns {string | null}
 */
export function takenBy(before, now, released) {
  const lost = before?.role === 'driver' && now.role !== 'driver';
  return lost && !released ? (now.driver ?? '') : null;
}
