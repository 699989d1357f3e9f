/** The first screen's texts, from lang/; drawer-strings.js has the rest. */

import {t, fill, joined, number, percent, said, unit} from '../lang/words.js';
import {PLAIN} from './messages.js';

/** @import {Situation} from './types.js' */

export const STRINGS = {
  title: (/** @type {string} */ car) => fill(t.title, {car}),
  drives: (/** @type {string} */ name) => fill(t.drives, {name: personName(name)}),
  ms: (/** @type {number | null} */ value) => (value === null ? '–' : unit(value, 'millisecond')),
  chip: (/** @type {'good' | 'slow' | 'none'} */ grade, /** @type {number | null} */ pictureMs,
    /** @type {number | null} */ linkMs) => fill(t.chip,
    {grade: t.gradeLong[grade], picture: STRINGS.ms(pictureMs), link: STRINGS.ms(linkMs)}),
  old: (/** @type {number} */ seconds, /** @type {boolean} */ sure) =>
    fill(sure ? t.old : t.oldAtLeast, {seconds: number(seconds, 1)}),
  /** Why the page gets no new picture; '' if it does not know. */
  noPicture: (/** @type {{trouble: string, fault: string}} */ {trouble, fault}) => (trouble === 'unsupported' ? t.noVideo
    : trouble === 'tap' ? t.tapForPicture : trouble ? fill(t.notDecoded, {reason: fault}) : ''),
  /** The limits of a grown-up; t.hudGuard and t.hudUnguarded load later. */
  max: (/** @type {number} */ limit, /** @type {{mode: string, measured?: boolean} | null} */ guard = null,
    /** A car that nothing stops if its PCA9685 fails. */ unguarded = false) => {
    const modes = /** @type {Record<string, string> | undefined} */ (t.hudGuard);
    const mode = guard?.mode === 'limit' && guard.measured === false ? 'unmeasured' : guard?.mode;
    return [fill(t.max, {much: percent(limit)}), mode ? modes?.[mode] : '', unguarded ? t.hudUnguarded : '']
      .filter(Boolean).join(' · ');
  },
  drivePercent: (/** @type {number} */ value) => deflection(value, t.drive, t.forward, t.back),
  steerPercent: (/** @type {number} */ value) => deflection(value, t.steer, t.left, t.right),
  /** Remaining charge and voltage; the car computes the charge. */
  battery: (/** @type {number | null} */ value, /** @type {number | null} */ share,
    /** @type {boolean} */ low, /** @type {number | null} */ oldS) => {
    if (value === null) return '? V';
    const volts = `${number(value, 1)}\u00a0V`;
    if (oldS !== null) return fill(t.voltsOld, {volts, seconds: number(oldS)});
    const charge = share === null ? volts : `${percent(share)} · ${volts}`;
    return low ? fill(t.voltsLow, {volts: charge}) : charge;
  },
  closed: (/** @type {import('../lib/types.js').Text} */ text) => fill(t.closed, {reason: said(text)}),
  gamepad: (/** @type {string} */ name) => fill(t.gamepad, {name}),
};

/** @param {number} value @param {string} rest @param {string} plus @param {string} minus */
const deflection = (value, rest, plus, minus) =>
  (value === 0 ? rest : fill(value > 0 ? plus : minus, {much: percent(Math.abs(value))}));

/** A person's name; the car sends "somebody" for a page without a name. @param {string} name */
export const personName = (name) => (name === 'somebody' || !name ? t.somebody : name);

/** Typed text without the characters that the car refuses. @param {string} typed */
export const plain = (typed) => [...typed].filter((char) => PLAIN.test(char)).join('');

/** Why the car stopped. @param {Extract<Situation, {kind: 'stopped'}>} situation */
function stopReason({stop, byUs, silenceMs}) {
  if (byUs) return t.youStopped;
  const causes = /** @type {Record<string, string | undefined>} */ (t.causes);
  const by = typeof stop.by === 'object' ? said(stop.by) : stop.by ?? '';
  const name = personName(by);
  const text = (name === by && causes[`${stop.cause}_by`]) || causes[stop.cause];
  return text === undefined ? stop.cause
    : fill(text, {seconds: number(silenceMs / 1000, 2), name, why: by});
}

/** The remedy for a stop. @param {Extract<Situation, {kind: 'stopped'}>} situation */
function stopRemedy({stop, driving, mayResume, leads}) {
  if (stop.clears === 'grown_up' && !mayResume) return t.next.grownUp;
  if (mayResume) return t.next.resume;
  if (leads) return t.next[leads];
  return driving ? t.next.letGo : t.next.driver;
}

/** @param {number} ms */
const delay = (ms) => (ms < 1000 ? unit(ms, 'millisecond') : unit(ms / 1000, 'second', 1, {unitDisplay: 'narrow'}));

/** The part that fails while something answers, and the remedy; '' if none is known. @param {import('./types.js').LinkFault | undefined} fault */
const faultText = (fault) => (fault ? fill(t.linkFaults[fault], {host: location.hostname}) : '');

/**
 * Effect of a lost link: the car stops for a driver's silence only.
 * @param {Extract<Situation, {kind: 'lost'}>} situation
 */
function lostLinkText({driving, stopWaits, fault}) {
  const again = faultText(fault) || t.lostAgain;
  if (driving) return joined(t.lostDriver, ...stopWaits ? [t.noAnswer] : [again, t.lostLetGo]);
  return stopWaits ? joined(t.noAnswer, t.lostShout) : joined(t.lostWatcher, again, t.lostStop);
}

/**
 * The words of the card; null for no card.
 * @param {Situation} it
 * @returns {{tone: 'alarm' | 'warn' | 'calm', title: string, text: string} | null}
 */
export function sentence(it) {
  switch (it.kind) {
    case 'connecting':
      return it.stopWaits ? {tone: 'alarm', title: t.stopWaits, text: joined(t.noAnswer, faultText(it.fault))}
        : it.fault ? {tone: 'warn', title: t.noLink, text: faultText(it.fault)}
        : {tone: 'calm', title: t.connecting, text: t.connectingText};
    case 'parked':
      return {tone: 'warn', title: t.parked, text: t.parkedText};
    case 'lost':
      return {tone: 'alarm', title: it.stopWaits ? t.lostWaits : t.lost, text: lostLinkText(it)};
    case 'late':
      return {tone: 'warn', title: t.late, text: fill(t.lateText, {delay: delay(it.ms), limit: delay(it.limitMs)})};
    case 'stopped':
      return {tone: 'alarm', title: t.stopped, text: joined(stopReason(it), stopRemedy(it))};
    case 'wheels':
      return {tone: 'alarm', title: t.wheels, text: it.words ? fill(t.wheelsTextWhy, {why: it.words}) : t.wheelsText};
    case 'camera': {
      const says = it.words && fill(t.cameraState, {reason: it.words});
      return {tone: 'warn', title: t.camera, text: joined(says, t.cameraText)};
    }
    case 'taken':
      return {tone: 'warn', title: it.by ? fill(t.taken, {name: personName(it.by)}) : t.givenAway, text: t.takenText};
    case 'locked':
      return {tone: 'calm', title: t.locked, text: t.lockedText};
    case 'watching':
      return it.driver && !it.free
        ? {tone: 'calm', title: STRINGS.drives(it.driver), text: t.watchingText}
        : {tone: 'calm', title: t.free, text: t.freeText};
    case 'encoder':
      return {tone: 'warn', title: t.encoder, text: t.encoderText};
    case 'coding':
      return {tone: 'warn', title: t.coding, text: fill(t.cameraState, {reason: it.words})};
    case 'battery':
      return {tone: 'warn', title: t.battery, text: t.batteryText};
    case 'ready':
      return it.letGo ? {tone: 'calm', title: t.letGo, text: t.letGoText} : null;
    case 'driving':
      return it.limited ? {tone: 'warn', title: t.slow, text: t.slowText} : null;
  }
}
