/** The strings of the first screen, so that they can be translated; the rest are in drawer-strings.js. */

/** @import {Situation} from './state.js' */

/** Strings that index.html names by `data-t` (text) and `data-t-label` (aria-label). */
export const MARKUP_STRINGS = {
  stop: 'STOP',
  stopLabel: 'Stop the car',
  pictureUnit: 'picture',
  linkUnit: 'link',
  close: 'Close',
  driveLabel: 'Drive: slide up for forward, down for back',
  steerLabel: 'Steer: slide left or right',
  lights: 'Lights',
  horn: 'Horn',
  fullScreen: 'Full screen',
  pictureLabel: 'What the car sees',
  menu: 'Menu',
};

export const STRINGS = {
  title: (/** @type {string} */ car) => `${car}: driver's seat`,
  take: 'Take the wheel',
  give: 'Give the wheel',
  takeShort: 'Take',
  giveShort: 'Give',
  enterCode: 'Enter the code',
  codeShort: 'Code',
  goOn: 'Go on',
  driveHere: 'Drive here',
  you: 'You drive',
  nobody: 'nobody drives',
  drives: (/** @type {string} */ name) => `${personName(name)} drives`,
  grade: {good: 'good', slow: 'slow', none: 'no link'},
  gradeLong: {
    good: 'Link is good', slow: 'Link is slow: drive slowly', none: 'No link to the car',
  },
  ms: (/** @type {number | null} */ value) => (value === null ? '–' : `${Math.round(value)} ms`),
  chip: (/** @type {'good' | 'slow' | 'none'} */ grade, /** @type {number | null} */ pictureMs,
    /** @type {number | null} */ linkMs) =>
    `${STRINGS.gradeLong[grade]}. ${STRINGS.ms(pictureMs)} picture, ${STRINGS.ms(linkMs)} link`,
  old: (/** @type {number} */ seconds, /** @type {boolean} */ sure) =>
    `picture is ${sure ? '' : 'at least '}${seconds.toFixed(1)} s old`,
  noPicture: 'No picture yet',
  noCamera: 'No camera: drive where you see the car',
  noVideo: 'This browser cannot show the video: use a newer one.',
  drivePercent: (/** @type {number} */ value) =>
    value === 0 ? 'drive' : `${value > 0 ? 'forward' : 'back'} ${Math.round(Math.abs(value) * 100)} %`,
  steerPercent: (/** @type {number} */ value) =>
    value === 0 ? 'steer' : `${value > 0 ? 'left' : 'right'} ${Math.round(Math.abs(value) * 100)} %`,
  battery: (/** @type {number | null} */ volts, /** @type {boolean} */ low,
    /** @type {number | null} */ oldS) => (volts === null ? '? V' : `${volts.toFixed(1)} V` +
    (oldS === null ? (low ? ' – low' : '') : `, ${Math.round(oldS)} s ago`)),
  batteryLow: 'Battery low: the car should go home and be charged.',
  gamepad: (/** @type {string} */ name) => `Gamepad: ${name}. Right trigger drives, left stick steers, B stops.`,
  gamepadGone: 'Gamepad unplugged: the car was let go.',
  maySleep: 'The screen may go to sleep while you drive: touch it now and then.',
  carError: (/** @type {import('../lib/types.js').CarError} */ error) => {
    const value = error.value ? ` (${error.value}` + (error.limit ? `; ${error.limit})` : ')')
      : error.limit ? ` (${error.limit})` : '';
    const next = error.next ? `. Next: ${error.next}.` : '.';
    return error.what[0].toUpperCase() + error.what.slice(1) + value + next;
  },
  menuLate: 'The menu has not come over the link yet; it opens as soon as it is here.',
  closed: (/** @type {string} */ reason) => `The car closed the link: ${reason}.`,
};

/** A person's name; the car calls a page without one "somebody". @param {string} name */
const personName = (name) => (name === 'somebody' || !name ? 'Somebody' : name);

/** Why the car stopped, by cause. */
const CAUSES = /** @type {Record<string, (by: string, silenceMs: number) => string>} */ ({
  silence: (_, silenceMs) => `No answer from the driver's browser for ${silenceMs / 1000} s.`,
  blind: () => 'The car had no fresh picture.',
  estop: (by) => `${personName(by)} pushed STOP.`,
  estop_grown_up: (by) => `A grown-up${personName(by) === by ? ` (${by})` : ''} pushed STOP.`,
  wheels_lost: () => 'The part that turns the wheels does not answer.',
  wheels_stopped: (by) => `The wheels stopped by themselves${by ? `: ${by}` : ''}.`,
  pins: () => 'What switches the motors does not answer: they are off.',
});

/** What to do after a stop. @param {Extract<Situation, {kind: 'stopped'}>} situation */
function whatNext({stop, driving, mayGoOn}) {
  if (stop.clears === 'grown_up' && !mayGoOn) return 'A grown-up has to push “Go on”.';
  if (mayGoOn) return 'Look around, then push “Go on”.';
  if (!driving) return 'The driver lets it go on.';
  return 'Let go of the stick, then drive.';
}

const NO_ANSWER = 'No answer to your STOP yet: it goes out as soon as the link is back.';

/**
 * What happens without a link: a driver's silence stops the car, a watcher's does not.
 * @param {Extract<Situation, {kind: 'lost'}>} situation
 */
function noLink({driving, stopWaits}) {
  const again = 'Trying again, several times a second.';
  if (driving) return `The car stops by itself. ${stopWaits ? NO_ANSWER : `${again} Let go of the stick, then drive on.`}`;
  return stopWaits ? `${NO_ANSWER} Until then call out to the driver.`
    : `If somebody drives, the car drives on. ${again} STOP goes out as soon as the link is back.`;
}

/**
 * The words of the card; null for no card.
 * @param {Situation} it
 * @returns {{tone: 'alarm' | 'warn' | 'calm', title: string, text: string} | null}
 */
export function sentence(it) {
  switch (it.kind) {
    case 'connecting':
      return it.stopWaits
        ? {tone: 'alarm', title: 'STOP waits', text: NO_ANSWER}
        : {tone: 'calm', title: 'Connecting', text: 'Looking for the car. It should answer within a second; if not, see that it is switched on and in the same network.'};
    case 'parked':
      return {tone: 'warn', title: 'Opened elsewhere', text: 'This seat is open in another tab. Drive there, or bring it back here.'};
    case 'lost':
      return {tone: 'alarm', title: it.stopWaits ? 'Link lost: STOP waits' : 'Link lost', text: noLink(it)};
    case 'late':
      return {tone: 'warn', title: 'Link too late', text: `The link is ${(it.ms / 1000).toFixed(1)} s late: the car waits. Let go of stick and keys; drive when this has gone.`};
    case 'stopped': {
      const cause = CAUSES[it.stop.cause];
      const why = it.byUs ? 'You pushed STOP.' : cause ? cause(it.stop.by ?? '', it.silenceMs) : it.stop.cause;
      return {tone: 'alarm', title: 'Stopped', text: `${why} ${whatNext(it)}`};
    }
    case 'wheels':
      return {tone: 'alarm', title: 'Wheels do not answer', text: `The part that turns the wheels does not answer${it.words && `: ${it.words}`}. The car stands until it is back; if that takes longer than a minute, switch the car off and on.`};
    case 'camera':
      return {tone: 'warn', title: 'No fresh picture', text: `${it.words && `The camera: ${it.words.replace('lost: ', '')}. `}Do not drive by an old picture.`};
    case 'taken':
      return {tone: 'warn', title: it.by ? `${personName(it.by)} took the wheel` : 'Wheel given away', text: 'You are watching now. STOP works for you as before.'};
    case 'locked':
      return {tone: 'calm', title: 'You are watching', text: 'Who has the code may drive. STOP works for everybody.'};
    case 'watching':
      return it.driver && !it.free
        ? {tone: 'calm', title: STRINGS.drives(it.driver), text: 'You are watching. STOP works for everybody.'}
        : {tone: 'calm', title: 'The wheel is free', text: 'Take it and drive.'};
    case 'battery':
      return {tone: 'warn', title: 'Battery low', text: 'Drive home now, slowly, and charge it.'};
    case 'ready':
      return it.letGo ? {tone: 'calm', title: 'Let go first', text: 'Let go of stick and keys once, then drive.'} : null;
    case 'driving':
      return it.limited ? {tone: 'warn', title: 'Slow', text: 'No fresh picture: the car drives slowly.'} : null;
  }
}
