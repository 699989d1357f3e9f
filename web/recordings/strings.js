/** The strings on the recordings page, in one place, so that they can be translated. */

/** @import {Copy} from './types.js' */

/** Strings that recordings.html names by `data-t` (text) and `data-t-label`. */
export const MARKUP_STRINGS = {
  seat: 'Drive',
  title: 'Recordings',
  listTitle: 'Drives',
  unlockHint: 'Who may drive may see what was recorded. The six digits stand on the screen that started the car.',
  code: 'Drive code',
  unlock: 'Show the recordings',
  search: 'Search names, marks, stops',
  driver: 'Driver',
  day: 'Day',
  clear: 'Show all',
  more: 'Show older drives',
  editTitle: 'This drive',
  titleLabel: 'Name',
  save: 'Save the name',
  remove: 'Delete this drive …',
  cancel: 'Cancel',
  close: 'Close',
  onlyGrownUps: 'Only a grown-up deletes.',
  back: 'All drives',
  pictureLabel: 'What the car saw',
  scrub: 'Time in the drive',
  speed: 'Speed',
  previous: 'One picture back',
  next: 'One picture on',
  marks: 'Marks',
  plots: 'What the car measured',
  zoomAll: 'Show all',
  zoomIn: 'Show less time, larger',
  zoomOut: 'Show more time',
  files: 'Files',
  exports: 'Take it with you',
  exportFilm: 'Film (mp4)',
  exportZip: 'Whole drive (zip)',
  exportCsv: 'Tables (CSV)',
  exportParquet: 'Tables (Parquet)',
  sheetOpen: 'Contact sheet',
  sheetLabel: 'A picture of each second',
  storage: 'Storage',
  storageDisk: 'How full the disk is',
  storageNobody: 'No car yet. On this computer: fpvstation pair ADDRESS',
  elsewhere: 'Open elsewhere',
  elsewhereHint: 'Rerun: download the files below, and where they are, say:',
  copy: 'Copy',
  exportCancel: 'Cancel',
  exportBar: 'How far it is',
  exportMissing: 'What is missing in it:',
  keysHint: 'Space plays and pauses, ← and → move 5 s, “,” and “.” one picture, “<” and “>” change the speed, M goes to the next mark. In the plots: push to go there, drag or pinch to look closer; “+”, “-” and “0” too.',
};

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
const WHEN = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short', day: 'numeric', month: 'short', year: 'numeric',
  hour: '2-digit', minute: '2-digit',
});
const DAY = new Intl.DateTimeFormat('en-GB', {
  weekday: 'long', day: 'numeric', month: 'long', year: 'numeric',
});
const DAY_SHORT = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short'});
const CLOCK = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit', minute: '2-digit', second: '2-digit',
});

/** Titles of the plots. */
const GROUPS = /** @type {Record<string, string>} */ ({
  range: 'Distances', battery: 'Battery', current: 'Current', setpoint: 'Asked for, and done',
  duty: 'Duty of the motors', latency: 'Latency', lost: 'Packets sent again',
});

const REASONS = /** @type {Record<string, string>} */ ({
  driving: 'driving', limited: 'slow: no fresh picture', guarded: 'held back by the guard',
  neutral: 'standing', nobody: 'nobody at the wheel', stopped: 'stopped',
});

/** Why the car stopped by itself or was stopped, by the causes of drive/gate.py. */
const CAUSES = /** @type {Record<string, string>} */ ({
  silence: 'no answer from the driver', blind: 'no fresh picture', estop: 'STOP pushed',
  estop_grown_up: 'STOP pushed by a grown-up', wheels_lost: 'motor control not answering',
  wheels_stopped: 'motor control stopped', pins: 'pins not answering',
});

/** @param {number} count @param {string} one @param {string} more */
const many = (count, one, more) => `${count} ${count === 1 ? one : more}`;

export const STRINGS = {
  pageTitle: (/** @type {string} */ car) => `${car}: recordings`,
  loading: 'Looking what was recorded …',
  loadingDrive: 'Fetching the pictures …',
  everybody: 'Everybody',
  nobody: 'Nobody (parked)',
  noneFound: 'No drive is like that. Search for something else, or show all.',
  unread: (/** @type {number} */ count) => `${many(count, 'older file is', 'older files are')} not looked into yet …`,
  parked: 'nobody at the wheel',
  metres: (/** @type {number} */ metres) => metres < 1000 ? `≈ ${Math.round(metres)} m` : `≈ ${(metres / 1000).toFixed(1)} km`,
  /** @param {Record<string, number>} stops */
  stops: (stops) => {
    const causes = Object.entries(stops);
    if (!causes.length) return '';
    const said = causes.map(([cause, times]) =>
      `${CAUSES[cause] ?? cause}${times > 1 ? ` ${times}×` : ''}`);
    const count = causes.reduce((sum, [, times]) => sum + times, 0);
    return `${many(count, 'stop', 'stops')}: ${said.join(', ')}`;
  },
  /** The causes whose words have this in them. @param {string} text */
  causes: (text) => Object.keys(CAUSES).filter((cause) =>
    CAUSES[cause].toLowerCase().includes(text.trim().toLowerCase())),
  edit: (/** @type {string} */ name) => `Name or delete: ${name}`,
  stillOpen: 'It is still being recorded: a minute after it ended it can be deleted.',
  /** What goes and what stays. @param {number} gone @param {string} size @param {number} stay */
  sure: (gone, size, stay) => {
    const goes = gone ? `${many(gone, 'file', 'files')}, ${size}, ${gone === 1 ? 'goes' : 'go'} for good.` : '';
    const stays = stay ? `${many(stay, 'file belongs', 'files belong')} to another drive, too, and ${stay === 1 ? 'stays' : 'stay'}: what is in ${stay === 1 ? 'it' : 'them'} of this drive is not listed any more, and goes with that one.` : '';
    return [goes, stays].filter(Boolean).join(' ');
  },
  removeSure: 'Delete for good',
  grownUpCode: 'Grown-ups’ code',
  intoTrash: 'Into the trash',
  /** Of a base station. @param {string} size */
  sureTrash: (size) => `Its session goes to the trash, ${size}, and after 30 days for good. Until then: fpvstation restore.`,
  refused: (/** @type {string} */ why) => `That did not work: ${why}`,
  empty: 'Nothing is recorded yet. Each drive stands here as soon as somebody has driven: picture, distances, battery, and what the motors did. Take the wheel and drive a little, then come back.',
  emptyFiles: 'There is nothing to see here yet.',
  failed: (/** @type {string} */ why) => `The list did not come: ${why}. Trying again.`,
  failedDrive: (/** @type {string} */ why) => `This part did not come: ${why}. Trying again.`,
  noPicture: 'No picture was recorded here.',
  unsupported: 'This browser cannot play the recording. Download the film, or open this page in a newer browser.',
  password: 'Password of the station',
  wrongCode: 'That is not the code.',
  play: 'Play',
  pause: 'Pause',
  /** @param {number} ms */
  when: (ms) => WHEN.format(new Date(ms)),
  /** @param {number} ms */
  day: (ms) => DAY.format(new Date(ms)),
  /** Where a drive is besides. @param {Copy[]} copies */
  copies: (copies) => copies.map(({place, verified_s: seconds, whole}) => {
    if (place === 'station') return whole ? 'fetched by the station' : 'partly fetched';
    const where = place === 'car' ? 'on the car' : place || 'stored here';
    if (!whole && place === 'car') return 'partly on the car';
    if (!whole) return `${where}: not whole yet`;
    const day = DAY_SHORT.format(new Date(seconds * 1000)).replace(' ', '\u00a0');  // on one line
    return seconds ? `${where}, verified ${day}` : where;
  }).join(' · '),
  /** @param {number} ms */
  clock: (ms) => CLOCK.format(new Date(ms)),
  /** @param {number} seconds */
  length: (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  },
  /** A moment, as finely as the steps between such. @param {number} seconds @param {number} stepS */
  moment: (seconds, stepS) => {
    const digits = stepS >= 1 ? 0 : stepS >= 0.1 ? 1 : 2;
    const whole = Math.floor(Number(seconds.toFixed(digits)));
    const rest = digits ? (seconds - whole).toFixed(digits).replace(/^[^.]*/, '') : '';
    return STRINGS.length(whole) + rest;
  },
  /** @param {number} fromS @param {number} toS */
  stretch: (fromS, toS) => `${STRINGS.moment(fromS, 0.1)} to ${STRINGS.moment(toS, 0.1)}`,
  /** @param {number} seconds */
  spoken: (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const minutes = Math.floor(whole / 60);
    const rest = many(whole % 60, 'second', 'seconds');
    return minutes ? `${many(minutes, 'minute', 'minutes')} ${rest}` : rest;
  },
  /** @param {number} bytes */
  size: (bytes) => {
    let power = 0;
    let value = bytes;
    while (value >= 999.5 && power < UNITS.length - 1) {
      value /= 1000;
      power += 1;
    }
    return `${value < 10 && power ? value.toFixed(1) : Math.round(value)} ${UNITS[power]}`;
  },
  /** @param {number} count */
  marks: (count) => many(count, 'mark', 'marks'),
  /** @param {number} count */
  files: (count) => many(count, 'file', 'files'),
  state: {closed: '', open: 'still recording', damaged: 'damaged'},
  /** @param {string} name */
  download: (name) => `Download ${name}`,
  openFile: 'still being written',
  foxglove: 'Foxglove',
  openFoxglove: (/** @type {string} */ name) => `Open ${name} in Foxglove`,
  copied: 'Copied',
  /** @param {number} at @param {string} text */
  mark: (at, text) => `${STRINGS.length(at)} ${text || 'mark'}`,
  /** @param {number} at @param {number} whole */
  at: (at, whole) => `${STRINGS.length(at)} / ${STRINGS.length(whole)}`,
  /** @param {number} at @param {number} whole */
  atSpoken: (at, whole) => `${STRINGS.spoken(at)} of ${STRINGS.spoken(whole)}`,
  /** @param {number} speed */
  speed: (speed) => `${speed}×`,
  /** @param {string} group */
  group: (group) => GROUPS[group] ?? group,
  /** @param {string} reason */
  reason: (reason) => REASONS[reason] ?? reason,
  /** @param {number | null} value @param {string} unit */
  value: (value, unit) => {
    if (value === null) return '–';
    const digits = unit === 'ms' || unit === '%' ? 0 : 2;
    return `${value.toFixed(digits)}${unit ? ` ${unit}` : ''}`;
  },
  about: (/** @type {string} */ value) => `≈ ${value}`,
  /** @param {string} name @param {number} low @param {number} high @param {string} unit */
  span: (name, low, high, unit) =>
    `${name} from ${STRINGS.value(low, unit)} to ${STRINGS.value(high, unit)}`,
  nothing: (/** @type {string} */ name) => `${name}: nothing`,
  gap: (/** @type {number} */ at, /** @type {string} */ words) => `${STRINGS.length(at)}: ${words}`,
};
