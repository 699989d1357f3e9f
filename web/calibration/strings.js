/** The strings of the calibration. */

/** @import {Step, SpeedRun, StraightRun, Value} from './api.js' */

/** @type {Record<string, string>} */
const PARTS = {
  drive: 'drive motor', steer: 'steering', left: 'left motor', right: 'right motor',
};
/** @type {Record<string, string>} */
const NAMES = {
  invert: 'turned round', dead_band: 'dead band (duty)', trim: 'trim, + forward or left',
  centre_us: 'centre (µs)', left_deg: 'end on the left (°)', right_deg: 'end on the right (°)',
  turn: 'turning on the spot', balance: 'balance, + slows the left side',
  top_mps: 'speed at full throttle (m/s)', least_mps: 'speed at the least throttle (m/s)',
  small_child_mps: 'top speed for a small child (m/s)', child_mps: 'top speed for a child (m/s)',
  full_v: 'voltage when full', nominal_v: 'usual voltage', empty_v: 'voltage when empty',
  curve: 'how full, from empty to full voltage', offset_m: 'offset (m)',
};
const part = (/** @type {string} */ of) => PARTS[of] ?? `sensor “${of}”`;
const upper = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @type {Record<string, (of: string) => string>} */
const TITLES = {
  direction: (of) => `Which way: ${part(of)}`,
  dead_band: (of) => `When it begins to turn: ${part(of)}`,
  ends: () => 'Steering: centre and ends',
  straight: () => 'Straight on',
  speed: () => 'How fast it goes',
  distance: (of) => `Distance: ${part(of)}`,
  battery: () => 'Battery',
};
/** Words for a phase of a step, or for all of its phases. @type {Record<string, Record<string, string>>} */
const PHASES = {
  direction: {
    hold: 'Put the car on a box: wheels in the air. Hold the button: the motor turns slowly, then faster. Let go when you have seen which way.',
    turns: 'It turns, faster by and by. Let go when you have seen which way.',
    asks: 'Which way did it turn?',
    right: 'Then it is as it should be. There is nothing to keep.',
    turn_round: 'Then it is wired the other way round. Keep this, and the car turns it round.',
  },
  dead_band: {
    coarse: 'Hold the button. The motor gets a little more at each step, until it turns. Push “It turns” at that moment; on the floor a range sensor may see it first.',
    rest: 'It turned. Wait until it stands; then it is tried again, in small steps.',
    fine: 'Once more, in small steps: hold the button, and push “It turns” when it does.',
    done: 'That is the duty at which it begins to turn.',
    never: 'It never turned. Is the motor’s supply on? Is this the motor that you look at?',
  },
  ends: {
    hold: 'Choose a side, and hold the button to see it. Move that end until nothing hums or jams, and the centre until the wheels point straight on.',
  },
  straight: {
    hold: 'On the floor, with two metres free ahead: mark where the car stands. Hold the button, let go after a metre or two, and measure how far ahead it came and how far aside.',
    drives: 'Let go after a metre or two.',
    asks: 'How far did it come?',
    again: 'Now it is set so. Put the car back and drive again.',
    done: 'Straight enough: 3 cm aside after a metre, or less.',
  },
  speed: {
    hold: 'On the floor, a wall ahead or behind in sight of a range sensor. Hold the button for two seconds, as long as there is room; then again at another throttle, forward or back.',
    drives: 'As long as there is room.',
    again: 'One run. Drive another one at another throttle.',
    short: 'Too short, or no range sensor saw a wall on the way: drive for longer, or measure by hand.',
    done: 'From these runs the car knows its speed. More runs make it surer.',
  },
  distance: {
    looks: 'Put a wall before the sensor, half a metre away.',
    asks: 'Measure from the sensor to the wall with a tape.',
    done: 'That is what is added to what it measures.',
  },
  battery: {
    looks: 'Nothing measures the battery at the moment.',
    asks: 'Fresh from the charger push “It is full”. When it is so empty that you would charge it push “It is empty”.',
    done: 'That is how it is reckoned.',
  },
};

export const STRINGS = {
  title: 'Calibrate',
  hint: 'Wheels in the air first, then on the floor. Nothing moves but while you hold a button. Each step can be undone.',
  groups: {air: 'Wheels in the air', floor: 'On the floor', still: 'Standing'},
  stepTitle: (/** @type {string} */ kind, /** @type {string} */ of) => (TITLES[kind] ?? String)(of),
  phase: (/** @type {Step} */ {kind, phase}) => PHASES[kind]?.[phase] ?? phase,
  when: (/** @type {number} */ utcS) =>
    new Date(utcS * 1000).toLocaleString([], {dateStyle: 'medium', timeStyle: 'short'}),
  hold: 'Hold to move',
  held: 'Moving: let go to stop',
  takeFirst: 'First take the wheel: the car takes wishes from one page.',
  take: 'Take the wheel',
  keep: 'Keep',
  back: 'Back',
  undo: 'Undo the last step',
  export: 'Download the profile with these values',
  values: 'All values',
  history: 'What was changed',
  historyEmpty: 'Nothing yet: all values are those of the car’s profile.',
  holds: 'holds now',
  own: (/** @type {Value} */ value) => `profile: ${STRINGS.value(value)}`,
  kept: 'Kept.',
  undone: 'Undone.',
  ended: 'The step has ended, as the page was away. Nothing of it was kept.',
  silent: 'The car does not answer. Try again when the link is back.',
  words: /** @type {Record<string, string>} */ ({
    forward: 'Forward', backward: 'Backward', left: 'Left', right: 'Right', nothing: 'Not at all',
    turns: 'It turns', centre: 'Centre', more: 'Further', less: 'Less far', forget: 'Forget the last run',
    full: 'It is full', empty: 'It is empty', line: 'A straight line', lithium: 'Lithium', nimh: 'NiMH',
  }),
  centreWords: {more: 'More to the left', less: 'More to the right'},
  camera: 'The camera’s picture says when it moves (on the floor)',
  kind: 'How the voltage falls',
  throttle: 'Throttle of the next run',
  throttles: (/** @type {number} */ share) =>
    `${Math.abs(share * 100).toFixed(0)} % ${share < 0 ? 'back' : 'forward'}`,
  wayM: 'Metres ahead', asideCm: 'Centimetres aside', tookS: 'Seconds', tapeM: 'Metres by the tape',
  toLeft: 'to the left', toRight: 'to the right',
  say: 'That is it',
  byHand: 'Measured by hand',
  duty: (/** @type {Step} */ {duty = 0, reached, by}) => {
    const who = by ? ` (by ${by === 'sensor' ? 'a range sensor' : by === 'camera' ? 'the camera' : 'you'})` : '';
    const held = reached === false ? ' The guard or the speed limit holds it back.' : '';
    return `Duty ${duty.toFixed(3)}${who}.${held}`;
  },
  sees: (/** @type {number | null | undefined} */ m) => (m == null ? 'It sees nothing.' : `It sees ${m.toFixed(3)} m.`),
  volts: (/** @type {number | null | undefined} */ v) => (v == null ? '' : `Now ${v.toFixed(2)} V.`),
  run: (/** @type {SpeedRun | StraightRun} */ run) => ('mps' in run
    ? `${STRINGS.throttles(run.throttle)}: ${run.mps.toFixed(2)} m/s`
    : `${run.way_m.toFixed(2)} m: ${Math.abs(run.aside_cm).toFixed(1)} cm ${run.aside_cm < 0 ? STRINGS.toRight : STRINGS.toLeft}`),
  shares: (/** @type {Record<string, number>} */ shares) => Object.entries(shares)
    .map(([name, share]) => `${name === 'child' ? 'child' : 'small child'} ${Math.round(share * 100)} %`).join(', '),
  presets: 'Speed limit for the top speeds: ',
  servo: (/** @type {Step} */ {centre_us: us = 0, left_deg: left = 0, right_deg: right = 0}) =>
    `Centre ${us.toFixed(0)} µs, left ${left.toFixed(0)}°, right ${right.toFixed(0)}°.`,
  setting: (/** @type {Step} */ {setting, found}) => {
    const [key] = Object.keys(found);
    return key === undefined || setting === undefined ? '' : `${STRINGS.name(key)}: ${STRINGS.value(setting)}.`;
  },
  value: (/** @type {Value} */ value) => (typeof value === 'boolean' ? (value ? 'yes' : 'no')
    : Array.isArray(value) ? value.map((one) => `${Math.round(one * 100)} %`).join(', ')
      : String(Math.round(value * 1000) / 1000)),
  /** "motors.drive.dead_band" in words. @param {string} key */
  name: (key) => {
    const [section = '', ...rest] = key.split('.');
    const last = rest.pop() ?? '';
    const of = section === 'motors' || section === 'sensors' ? rest.at(-1) : section === 'battery' ? 'battery' : undefined;
    const where = of === undefined ? '' : of === 'battery' ? 'Battery: ' : `${upper(part(of))}: `;
    return upper(`${where}${NAMES[last] ?? last}`);
  },
  /** What a change was of: "dead_band drive", or the key of a value. @param {string} what */
  change: (what) => {
    const [kind = '', of = ''] = what.split(' ');
    return kind in TITLES ? STRINGS.stepTitle(kind, of) : STRINGS.name(what);
  },
};
