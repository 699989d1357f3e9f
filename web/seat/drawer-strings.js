/** The strings of what loads after the first screen; the others are in strings.js. */

/** @import {Battery, Health, Welcome} from '../lib/types.js' */

const metres = (/** @type {number} */ value) => `${value.toFixed(2)} m`;
const where = (/** @type {boolean} */ back) => (back ? 'behind' : 'ahead');

/** Strings that drawer.html names by `data-t` and `data-t-label`. */
export const MARKUP_STRINGS = {
  stop: 'STOP',
  close: 'Close',
  introTitle: 'New here?',
  introDriveKeys: 'Arrow keys or W A S D drive and steer. A gamepad does too.',
  introDriveTouch: 'Left thumb drives, right thumb steers. Let go and it stops.',
  introStopKeys: 'Red octagon, Space or Esc. Everybody may stop the car.',
  introStopTouch: 'The red octagon stops the car. Everybody may push it.',
  introGive: 'Done? Give the wheel to the next one, up on the left.',
  introOk: 'Got it',
  unlockTitle: 'Enter the code',
  unlockHint: 'Six digits to drive: they stand on the screen that started the car. The grown-up code, letters and digits, fits here too.',
  codeLabel: 'Code',
  unlock: 'Unlock',
  keysTitle: 'Keys',
  car: 'Car',
  sensorFaults: 'Sensors that measure nothing',
  linkUnit: 'link',
  lostUnit: 'lost, up to 20 %',
  pictureUnit: 'picture',
  lastMinute: 'The last minute',
  nameLabel: 'Your name',
  nameHint: 'So that others see who drives.',
  showKeys: 'Keys',
  showIntro: 'How to drive',
  showSticks: 'Sticks and gamepad',
  whole: 'Show the whole picture',
  tilt: 'Steer by tilting',
  tiltCentre: 'This is straight ahead',
  grownUps: 'Grown-ups',
  grownUpsLocked: 'Speed limit, guard, recording on and off, and taking the wheel are behind the grown-up code.',
  enterGrownUp: 'Enter the grown-up code',
  limitLabel: 'Speed limit',
  takeNow: 'Take the wheel now',
  pictureAndLink: 'Picture and link',
  recordings: 'Recordings',
  seeDrives: 'See the drives',
  buttons: 'Children’s buttons',
  buttonsHint: 'Coloured lights and a memory game. Nothing there moves the car.',
  openButtons: 'Open the buttons',
  openNetwork: 'Wi-Fi of the car',
  lookForFaults: 'Look for faults',
  calibrate: 'Calibrate',
  figures: 'Figures for engineers',
  beeps: 'Beep while reversing (a long beep: nothing is measured)',
  guard: 'Collision guard',
  guardOff: 'off: nothing is said, nothing is done',
  guardWarn: 'warns: you brake',
  guardLimit: 'helps: the car slows down and stops',
  secureTitle: 'Sharper picture, screen stays awake',
  secureHint: 'Open the safe address. The browser warns once, because the car made its certificate itself: choose “Advanced”, then “Proceed”.',
  secureGo: 'Open https',
  secureTrust: 'Without the warning',
  secureLater: 'Not now',
};

export const DRAWER_STRINGS = {
  wrongCode: 'That is not the code.',
  unlocked: 'Unlocked. You may drive.',
  guest: (/** @type {string} */ until) => `You may drive until ${until}.`,
  invitationOver: 'This invitation is over, or somebody used it: ask for another, or enter the code.',
  grownUp: 'Hello, grown-up.',
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
  picture: {
    title: 'Picture settings',
    hint: 'For another size, rate or side the camera starts anew: the car stops for a moment.',
    silent: 'The car does not say how its picture is set. Close this and open it again.',
    none: 'This camera has no settings: its program is started by the profile.',
    size: 'Size',
    rate: 'Pictures a second',
    perSecond: (/** @type {number} */ fps) => `${Math.round(fps * 10) / 10}`,
    flip: 'Turn the picture over',
    /** @type {Record<string, string>} */
    flips: {
      none: 'no', horizontal: 'left and right', vertical: 'top and bottom',
      both: 'both: the camera hangs upside down',
    },
    exposure: 'Exposure',
    /** @type {Record<string, string>} */
    exposures: {
      normal: 'normal', sport: 'short: motion is sharp', long: 'long: more light',
    },
    brightness: 'Brightness',
    night: 'Night: bright in the dark, fewer pictures a second',
  },
  recorder: {
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
  moments: {
    snapshot: 'Save this picture', mark: 'Mark this moment',
    saved: (/** @type {string} */ name) => `Picture saved: ${name}`,
    notSaved: 'The picture was not saved: this browser makes no file of it.',
    locked: 'Not marked: who has the code may mark moments.',
    noRecorder: 'Not marked: this car records nothing.',
    noLink: 'Not marked: there is no link to the car.',
  },
  rate: (/** @type {number} */ bitsPerS) => `${(bitsPerS / 1e6).toFixed(1)} Mbit/s`,
  upTo: (/** @type {number} */ value) => `0–${Math.round(value)} ms`,
  details: {
    picture: 'Picture, capture to glass', link: 'Link, there and back', wheels: 'Wheels', fps: 'Pictures a second',
    lost: 'Packets sent again', rate: 'Bit rate', dropped: 'Dropped', path: 'Path', size: 'Size', pages: 'Pages open',
    car: 'Car software',
  },
  share: (/** @type {number | null} */ value) => (value === null ? '–' : `${(value * 100).toFixed(1)} %`),
  weak: (/** @type {number} */ lost) =>
    `Weak Wi-Fi: ${Math.round(lost * 100)} of 100 packets are lost. Drive slowly, and go nearer to the car.`,
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
    faults: 'Computer', celsius: 'Computer’s temperature', wifi: 'Its Wi-Fi',
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
 * Each key and what it does, of what this car has.
 * @param {Pick<Welcome, 'has_lights' | 'has_horn'>} car @returns {[string, string][]}
 */
export function keysOf({has_lights: lights, has_horn: horn}) {
  const pad = `right trigger forward, left trigger back, left stick steers, ${lights ? 'A lights, ' : ''}B stops, X saves the picture, Y marks`;
  /** @type {[string, string, boolean][]} */
  const rows = [
    ['↑ ↓ ← → or W S A D', 'drive and steer', true], ['Space, Esc', 'stop', true],
    ['L', 'lights', lights], ['H', 'horn', horn], ['F', 'full screen', true],
    ['P', 'save the picture', true], ['M', 'mark this moment in the recording', true],
    ['?', 'these keys', true], ['Gamepad', pad, true],
  ];
  return rows.flatMap(([key, does, has]) =>
    (has ? [/** @type {[string, string]} */ ([key, does])] : []));
}

/**
 * A device that is too slow: how slow, and what to do.
 * @param {{intervalMs: number, decodeMs: number}} pace @param {boolean} secure is this https?
 */
export function paceSays({intervalMs, decodeMs}, secure) {
  const each = `pictures come every ${Math.round(intervalMs)} ms, it shows one every ${Math.round(decodeMs)} ms`;
  const first = secure ? 'Close other programs and tabs' : 'Open the car’s https address';
  return `This device is too slow for the picture: ${each}. Drive slowly. ${first}, try another browser, or ask a grown-up for a smaller picture (camera.width in the car’s profile).`;
}

/** What the car's computer says is wrong with it. @param {Health} health */
export function computerSays({age_s: age, faults = []}) {
  return age === null || age === undefined ? null : faults.join('; ') || DRAWER_STRINGS.fine;
}

/**
 * The rows of figures about the car's computer, without what is unknown.
 * @param {Health} health @returns {[string, string][]}
 */
export function healthRows(health) {
  const {celsius, wifi_dbm: dbm, disk_free_mb: disk, memory_free_mb: memory, load} = health;
  const {uptime_s: uptime, wifi_mbps: mbps} = health;
  const names = DRAWER_STRINGS.health;
  /** @type {[string, string | null][]} */
  const rows = [
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
