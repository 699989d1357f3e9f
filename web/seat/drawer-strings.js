/** The strings of what loads after the first screen; the others are in strings.js. */

/** @import {Battery, Health} from '../lib/types.js' */

const metres = (/** @type {number} */ value) => `${value.toFixed(2)} m`;
const where = (/** @type {boolean} */ back) => (back ? 'behind' : 'ahead');

/** Strings that drawer.html names by `data-t` and `data-t-label`. */
export const MARKUP_STRINGS = {
  sensorFaults: 'Sensors that measure nothing',
  linkUnit: 'link',
  pictureUnit: 'picture',
  lastMinute: 'The last minute',
  you: 'You',
  nameLabel: 'Your name',
  nameHint: 'So that others see who drives.',
  showKeys: 'Keys',
  showIntro: 'How to drive',
  whole: 'Show the whole picture',
  tilt: 'Steer by tilting',
  tiltCentre: 'This is straight ahead',
  grownUps: 'Grown-ups',
  grownUpsLocked: 'Speed limit, guard, recording on and off, and taking the wheel are behind the grown-up code.',
  enterGrownUp: 'Enter the grown-up code',
  limitLabel: 'Speed limit',
  takeNow: 'Take the wheel now',
  buttons: 'Buttons for children',
  recordings: 'Recordings',
  beeps: 'Beep while reversing (a long beep: nothing is measured)',
  guard: 'Collision guard',
  guardOff: 'off: nothing is said, nothing is done',
  guardWarn: 'warns: you brake',
  guardLimit: 'helps: the car slows down and stops',
  secureTitle: 'Sharper picture, screen stays awake',
  secureHint: 'Open the safe address. The browser warns once, because the car made its certificate itself: choose “Advanced”, then “Proceed”.',
  secureGo: 'Open https',
  secureLater: 'Not now',
};

export const DRAWER_STRINGS = {
  metres,
  /**
   * Why a sensor measures nothing, and since when.
   * @param {string} state @param {number | null} ageS
   */
  rangeFault: (state, ageS) => `${state === 'ok' ? 'nothing new' : state}, ${DRAWER_STRINGS.lastSeen(ageS)}`,
  rangeBad: (/** @type {string} */ why) => `no distance (${why})`,
  rangeSay: (/** @type {string} */ name, /** @type {string} */ much) => `${name}: ${much}`,
  /**
   * Rounded, as screen readers read it at every change.
   * @param {import('./ranges.js').Alarm} alarm
   */
  guardSays: ({back, metres: near, acts, stands}) => {
    if (near === null) {
      const slow = acts ? 'slow that way' : 'drive slowly';
      const away = `first drive ${back ? 'forward' : 'back'}`;
      return `Nothing is measured ${where(back)}: ${stands ? away : slow}`;
    }
    const what = `Wall ${near.toFixed(1)} m ${where(back)}`;
    return `${what}: ${stands ? 'the car stops' : acts ? 'the car slows down' : 'brake!'}`;
  },
  lastSeen: (/** @type {number | null} */ ageS) => {
    if (ageS === null) return 'never seen';
    if (ageS < 1) return 'last seen just now';
    return `last seen ${ageS < 120 ? `${Math.floor(ageS)} s` : DRAWER_STRINGS.uptime(ageS)} ago`;
  },
  recorder: {
    title: 'Recording',
    on: (/** @type {string} */ time) => `Recording for ${time}`,
    off: 'Not recording; the last minute can still be kept',
    /** @param {string} much @param {boolean | undefined} station */
    room: (much, station) =>
      `room for ${much} more, then ${station ? 'recording stops' : 'the oldest drives go'}`,
    bad: (/** @type {string} */ words) => `Nothing is recorded: ${words}. Driving goes on.`,
    again: 'Recording goes on.',
    kept: 'The last minute is kept.',
    turnOn: 'Record', turnOff: 'Stop recording', keep: 'Keep the last minute',
    markLabel: 'Mark this moment (a word, if you like)', mark: 'Mark', marked: 'Marked.',
    tones: {on: 'Recording', off: 'Not recording', bad: 'Recording failed'},
  },
  rate: (/** @type {number} */ bitsPerS) => `${(bitsPerS / 1e6).toFixed(1)} Mbit/s`,
  upTo: (/** @type {number} */ value) => `0–${Math.round(value)} ms`,
  details: {
    picture: 'Picture, capture to glass', link: 'Link, there and back', fps: 'Pictures a second',
    rate: 'Bit rate', dropped: 'Dropped', path: 'Path', size: 'Size', pages: 'Pages open',
    car: 'Car software',
  },
  paths: {webcodecs: 'WebCodecs', mse: 'MSE (plain http)', none: 'none'},
  depth: 'What the depth camera sees: red is near, blue is far, black is unknown',
  battery: 'Battery',
  limit: (/** @type {number} */ share) => `${Math.round(share * 100)} %`,
  watchers: (/** @type {number} */ count) => (count === 1 ? '1 page open' : `${count} pages open`),
  batterySays: (/** @type {Battery} */ {volts, amps, share, state}) => {
    const much = volts === null ? '' : `${volts.toFixed(2)} V, ${(amps ?? 0).toFixed(1)} A, ` +
      `about ${Math.round((share ?? 0) * 100)} %`;
    return state === 'ok' || !state ? much : `${much ? `${much}; ` : ''}${state}`;
  },
  fault: (/** @type {string} */ words) => `The car's computer: ${words}.`,
  health: {
    faults: 'Car computer', celsius: 'Its temperature', wifi: 'Its Wi-Fi',
    disk: 'Room on its card', memory: 'Free memory', load: 'Load', uptime: 'Up for',
  },
  fine: 'fine',
  celsius: (/** @type {number} */ value) => `${value.toFixed(0)} °C`,
  wifi: (/** @type {number} */ dbm, /** @type {number | null} */ mbps) =>
    `${dbm.toFixed(0)} dBm${mbps === null ? '' : `, ${mbps.toFixed(0)} Mbit/s`}`,
  room: (/** @type {number} */ mb) => (mb < 1000 ? `${mb.toFixed(0)} MB` : `${(mb / 1000).toFixed(1)} GB`),
  uptime: (/** @type {number} */ seconds) => {
    const minutes = Math.floor(seconds / 60);
    return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
  },
};

/**
 * The drawer's rows about the car's computer, without what is unknown.
 * @param {Health} health @returns {[string, string][]}
 */
export function healthRows(health) {
  const {celsius, wifi_dbm: dbm, disk_free_mb: disk, memory_free_mb: memory, load} = health;
  const {uptime_s: uptime, wifi_mbps: mbps, faults = []} = health;
  const names = DRAWER_STRINGS.health;
  /** @type {[string, string | null][]} */
  const rows = [
    [names.faults, health.age_s === null || health.age_s === undefined ? null
      : faults.join('; ') || DRAWER_STRINGS.fine],
    [names.celsius, known(celsius, DRAWER_STRINGS.celsius)],
    [names.wifi, known(dbm, (value) => DRAWER_STRINGS.wifi(value, mbps ?? null))],
    [names.disk, known(disk, DRAWER_STRINGS.room)],
    [names.memory, known(memory, DRAWER_STRINGS.room)],
    [names.load, known(load, (value) => value.toFixed(2))],
    [names.uptime, known(uptime, DRAWER_STRINGS.uptime)],
  ];
  return rows.flatMap(([name, value]) =>
    (value === null ? [] : [/** @type {[string, string]} */ ([name, value])]));
}

/**
 * The words for a value; null for an unknown one.
 * @param {number | null | undefined} value @param {(value: number) => string} words
 */
function known(value, words) {
  return value === null || value === undefined ? null : words(value);
}
