/** The first screen's texts, from lang/; drawer-strings.js has the rest. */

import {W, fill, number, percent, unit} from '../lang/words.js';

/** @import {Situation} from './types.js' */

export const STRINGS = {
  title: (/** @type {string} */ car) => fill(W.title, {car}),
  drives: (/** @type {string} */ name) => fill(W.drives, {name: personName(name)}),
  ms: (/** @type {number | null} */ value) => (value === null ? '–' : unit(value, 'millisecond')),
  chip: (/** @type {'good' | 'slow' | 'none'} */ grade, /** @type {number | null} */ pictureMs,
    /** @type {number | null} */ linkMs) => fill(W.chip,
    {grade: W.gradeLong[grade], picture: STRINGS.ms(pictureMs), link: STRINGS.ms(linkMs)}),
  old: (/** @type {number} */ seconds, /** @type {boolean} */ sure) =>
    fill(sure ? W.old : W.oldAtLeast, {seconds: number(seconds, 1)}),
  drivePercent: (/** @type {number} */ value) => deflection(value, W.drive, W.forward, W.back),
  steerPercent: (/** @type {number} */ value) => deflection(value, W.steer, W.left, W.right),
  battery: (/** @type {number | null} */ value, /** @type {boolean} */ low,
    /** @type {number | null} */ oldS) => {
    if (value === null) return '? V';
    const volts = `${number(value, 1)} V`;
    if (oldS !== null) return fill(W.voltsOld, {volts, seconds: number(oldS)});
    return low ? fill(W.voltsLow, {volts}) : volts;
  },
  gamepad: (/** @type {string} */ name) => fill(W.gamepad, {name}),
  carError: (/** @type {import('../lib/types.js').CarError} */ error) => {
    const value = error.value ? ` (${error.value}` + (error.limit ? `; ${error.limit})` : ')')
      : error.limit ? ` (${error.limit})` : '';
    const what = error.what[0].toUpperCase() + error.what.slice(1);
    return `${what}${value}.${error.next ? ` ${fill(W.nextStep, {step: error.next})}` : ''}`;
  },
  closed: (/** @type {string} */ reason) => fill(W.closed, {reason}),
};

/** @param {number} value @param {string} rest @param {string} plus @param {string} minus */
const deflection = (value, rest, plus, minus) =>
  (value === 0 ? rest : fill(value > 0 ? plus : minus, {much: percent(Math.abs(value))}));

/** A person's name; the car calls a page without one "somebody". @param {string} name */
const personName = (name) => (name === 'somebody' || !name ? W.somebody : name);

/** ": why", if it is known. @param {string} why */
const because = (why) => (why ? `: ${why}` : '');

/** Why the car stopped. @param {Extract<Situation, {kind: 'stopped'}>} situation */
function whyStopped({stop, byUs, silenceMs}) {
  if (byUs) return W.youStopped;
  const by = stop.by ?? '';
  const cause = /** @type {Record<string, string>} */ (W.causes)[stop.cause];
  return cause === undefined ? stop.cause : fill(cause, {
    seconds: number(silenceMs / 1000, 2), name: personName(by), why: because(by),
    who: personName(by) === by ? ` (${by})` : '',
  });
}

/** The remedy for a stop. @param {Extract<Situation, {kind: 'stopped'}>} situation */
function whatNext({stop, driving, mayGoOn}) {
  if (stop.clears === 'grown_up' && !mayGoOn) return W.next.grownUp;
  if (mayGoOn) return W.next.goOn;
  return driving ? W.next.letGo : W.next.driver;
}

/**
 * Text of a stop for a grown-up driver, with the remedy.
 * @param {{cause: string, by: string}} stop
 */
export function stopSays({cause, by}) {
  const arms = ['silence', 'blind'].includes(cause);
  const stop = {cause, by, clears: arms ? 'neutral' : 'resume'};
  const it = {kind: /** @type {const} */ ('stopped'), stop, driving: true, byUs: false, mayGoOn: !arms, silenceMs: 250};
  return `${whyStopped(it)} ${whatNext(it)}`;
}

/**
 * Effect of a lost link: the car stops for a driver's silence only.
 * @param {Extract<Situation, {kind: 'lost'}>} situation
 */
function noLink({driving, stopWaits}) {
  if (driving) return `${W.lostDriver} ${stopWaits ? W.noAnswer : `${W.lostAgain} ${W.lostLetGo}`}`;
  return stopWaits ? `${W.noAnswer} ${W.lostShout}` : `${W.lostWatcher} ${W.lostAgain} ${W.lostStop}`;
}

/**
 * The words of the card; null for no card.
 * @param {Situation} it
 * @returns {{tone: 'alarm' | 'warn' | 'calm', title: string, text: string} | null}
 */
export function sentence(it) {
  switch (it.kind) {
    case 'connecting':
      return it.stopWaits ? {tone: 'alarm', title: W.stopWaits, text: W.noAnswer}
        : {tone: 'calm', title: W.connecting, text: W.connectingText};
    case 'parked':
      return {tone: 'warn', title: W.parked, text: W.parkedText};
    case 'lost':
      return {tone: 'alarm', title: it.stopWaits ? W.lostWaits : W.lost, text: noLink(it)};
    case 'late':
      return {tone: 'warn', title: W.late, text: fill(W.lateText, {seconds: number(it.ms / 1000, 1)})};
    case 'stopped':
      return {tone: 'alarm', title: W.stopped, text: `${whyStopped(it)} ${whatNext(it)}`};
    case 'wheels':
      return {tone: 'alarm', title: W.wheels, text: fill(W.wheelsText, {why: because(it.words)})};
    case 'camera': {
      const says = it.words && `${fill(W.cameraSays, {words: it.words})} `;
      return {tone: 'warn', title: W.camera, text: says + W.cameraText};
    }
    case 'taken':
      return {tone: 'warn', title: it.by ? fill(W.taken, {name: personName(it.by)}) : W.givenAway, text: W.takenText};
    case 'locked':
      return {tone: 'calm', title: W.locked, text: W.lockedText};
    case 'watching':
      return it.driver && !it.free
        ? {tone: 'calm', title: STRINGS.drives(it.driver), text: W.watchingText}
        : {tone: 'calm', title: W.free, text: W.freeText};
    case 'battery':
      return {tone: 'warn', title: W.battery, text: W.batteryText};
    case 'ready':
      return it.letGo ? {tone: 'calm', title: W.letGo, text: W.letGoText} : null;
    case 'driving':
      return it.limited ? {tone: 'warn', title: W.slow, text: W.slowText} : null;
  }
}
