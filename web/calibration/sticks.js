/** How sticks and gamepads feel on this device: curve, hands, the gamepad that drives, its dead
 * zone and mapping, with a live picture of it. Loaded on demand. */

import {t} from '../lang/words.js';
import {make, setAttr, setText, show, svg} from '../lib/dom.js';
import {saved} from '../lib/storage.js';
import {FEEL, pushed, stick} from '../lib/curves.js';
import {PadReading, choosePad, connectedPads, hasGamepads, padName} from '../lib/gamepads.js';
import {actionButton, check, labelled, paragraph, row} from './fields.js';
import {STICKS} from './sticks-strings.js';

/** @typedef {keyof typeof FEEL.pad} Role */

const LOOK_MS = 50;
/** So far an axis, or a button, has to go from where it was to be meant. */
const MEANT = 0.6;
const WIDE = 120;

const keep = () => saved.set('sticks', JSON.stringify({...FEEL, learning: undefined}));

/**
 * All buttons and halves of axes, and how far each is pushed. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad @returns {Map<string, number>}
 */
export function parts(pad) {
  const names = pad.buttons.map((_, index) => `b${index}`);
  for (const index of pad.axes.keys()) names.push(`a${index}-`, `a${index}+`);
  return new Map(names.map((name) => [name, pushed(pad, name)]));
}

/**
 * The input that moved furthest since `before`, if far enough to be intended. Pure.
 * @param {Map<string, number>} before @param {Map<string, number>} now
 */
export function movedPart(before, now) {
  const ways = [...now].map(([name, value]) => ({name, by: value - (before.get(name) ?? 0)}));
  const most = ways.sort((a, b) => b.by - a.by)[0];
  return most && most.by >= MEANT ? most.name : null;
}

/**
 * Gives a part to a role; the role that had it gets the other's. Pure.
 * @param {typeof FEEL.pad} pad @param {Role} role @param {string} part
 */
export function assigned(pad, role, part) {
  const roles = /** @type {Role[]} */ (Object.keys(pad));
  const had = roles.find((candidate) => pad[candidate] === part);
  return {...pad, ...(had ? {[had]: pad[role]} : {}), [role]: part};
}

/** @param {HTMLElement} place */
export function open(place) {
  place.className = 'sticks';
  const hand = check(t.sticks.leftHanded, FEEL.leftHanded, (on) => {
    FEEL.leftHanded = on;
    document.body.classList.toggle('left-handed', on);
    keep();
  }, 'left-handed');
  place.append(hand, expo(), gamepad());
}

function expo() {
  const curve = svg('path', {class: 'curve picture'});
  const picture = svg('svg', {viewBox: `0 0 ${WIDE} ${WIDE}`, width: WIDE, height: WIDE, 'aria-hidden': 'true'});
  picture.append(svg('path', {d: `M0 ${WIDE}H${WIDE}`, class: 'rail'}), curve);
  const draw = () => {
    const points = Array.from({length: 25}, (_, index) =>
      `${(index * WIDE) / 24} ${WIDE - stick(index / 24) * WIDE}`);
    setAttr(curve, 'd', `M${points.join('L')}`);
  };
  const field = slider('expo', 1, draw);
  draw();
  return row([labelled(t.sticks.expoLabel, field), picture], 'expo');
}

/** @param {'expo' | 'dead'} name @param {number} max @param {() => void} [changed] */
function slider(name, max, changed = () => {}) {
  const field = document.createElement('input');
  Object.assign(field, {type: 'range', min: '0', max: String(max), step: name === 'expo' ? '0.05' : '0.01', value: String(FEEL[name])});
  field.dataset.testid = name;
  const says = () => setAttr(field, 'aria-valuetext', STICKS[name](FEEL[name]));
  field.addEventListener('input', () => {
    FEEL[name] = Number(field.value);
    says();
    changed();
    keep();
  });
  says();
  return field;
}

/** The gamepads, each with a lamp that is lit while it moves; a person may choose one. */
function chooser() {
  const element = document.createElement('fieldset');
  element.className = 'pads-list';
  let shown = '';
  /** @type {Map<number, HTMLElement>} */
  const lamps = new Map();
  /** @param {string} id @param {string} name */
  const choice = (id, name) => {
    const label = document.createElement('label');
    const radio = document.createElement('input');
    const lamp = make('i', '');
    Object.assign(radio, {type: 'radio', name: 'gamepad', value: id, checked: FEEL.use === id});
    radio.addEventListener('change', () => {
      FEEL.use = id;
      keep();
    });
    label.className = 'check';
    label.append(radio, make('span', name), lamp);
    return {label, lamp};
  };
  /** @param {Gamepad[]} pads @param {Gamepad | undefined} driving @param {Map<number, PadReading>} readings */
  const update = (pads, driving, readings) => {
    const now = pads.map(({index, id}) => `${index} ${id}`).join();
    show(element, pads.length > 0);
    if (now !== shown) {
      shown = now;
      lamps.clear();
      const any = choice('', t.sticks.any);
      any.lamp.remove();
      element.replaceChildren(make('legend', t.sticks.which), any.label, ...pads.map(({index, id}) => {
        const {label, lamp} = choice(id, padName(id));
        lamps.set(index, lamp);
        return label;
      }));
    }
    for (const [index, lamp] of lamps) {
      lamp.classList.toggle('on', (readings.get(index)?.before.size ?? 0) > 0 || readings.get(index)?.moves === true);
      setText(lamp, index === driving?.index ? t.sticks.drives : '');
    }
  };
  return {element, update};
}

/** The rows by which a person gives each role a button or half an axis. */
function mapping() {
  /** @type {Role | null} */
  let learning = null;
  /** @type {Map<string, number>} */
  let before = new Map();
  const roles = /** @type {Role[]} */ (Object.keys(FEEL.pad)).map((role) => {
    const label = make('span', '');
    const ask = actionButton(t.sticks.change, () => {
      learning = learning === role ? null : role;
      FEEL.learning = learning !== null;
      before = new Map();
    }, `role-${role}`);
    ask.setAttribute('aria-label', STICKS.changeOf(role));
    return {role, label, element: row([label, ask])};
  });
  /** Learns from the parts of a gamepad. @param {Map<string, number>} now */
  const learn = (now) => {
    if (!learning) return;
    if (before.size === 0) before = now;
    const part = movedPart(before, now);
    if (part === null) return;
    Object.assign(FEEL.pad, assigned(FEEL.pad, learning, part));
    learning = null;
    FEEL.learning = false;
    keep();
  };
  const update = () => {
    for (const {role, label} of roles) setText(label, STICKS.role(role, FEEL.pad[role]));
    return learning;
  };
  return {elements: roles.map(({element}) => element), learn, update};
}

function gamepad() {
  const box = make('div', '');
  const says = paragraph('');
  says.setAttribute('role', 'status');
  says.dataset.testid = 'gamepad-says';
  const bars = make('ul', '');
  bars.className = 'bars';
  const {element: list, update: updateList} = chooser();
  const {elements, learn, update} = mapping();
  const dead = labelled(t.sticks.deadLabel, slider('dead', 0.5));
  /** @type {Map<number, PadReading>} */
  const readings = new Map();
  /** @type {Gamepad | undefined} */
  let driving;
  const look = () => {
    if (box.offsetWidth === 0) {
      FEEL.learning = false;  // the sheet is closed: a gamepad drives again
      clearInterval(timer);
      return;
    }
    const pads = connectedPads();
    for (const pad of pads) {
      const reading = readings.get(pad.index);
      if (reading?.id !== pad.id) readings.set(pad.index, new PadReading(pad.id));
      readings.get(pad.index)?.read(pad, performance.now());
    }
    const before = pads.find(({index}) => index === driving?.index);
    driving = choosePad(pads, before, ({index}) => readings.get(index)?.moves === true, false) ?? pads[0];
    updateList(pads, driving, readings);
    for (const one of [bars, dead, ...elements]) show(one, Boolean(driving));
    const learning = update();
    setText(says, !hasGamepads() ? t.sticks.needsHttps : !driving ? t.sticks.none
      : learning ? STICKS.pushNow(learning) : STICKS.here(driving.id));
    if (!driving) return;
    const now = parts(driving);
    drawBars(bars, now);
    learn(now);
  };
  const timer = setInterval(look, LOOK_MS);
  box.append(says, list, dead, ...elements, bars);
  setTimeout(look);
  return box;
}

/** @param {HTMLElement} bars @param {Map<string, number>} now how far each part is pushed */
function drawBars(bars, now) {
  if (now.size !== bars.children.length) {
    bars.replaceChildren(...[...now.keys()].map((name) => bar(name)));
  }
  for (const item of bars.children) {
    const {dataset, style} = /** @type {HTMLElement} */ (item);
    style.setProperty('--way', (now.get(dataset.part ?? '') ?? 0).toFixed(2));
  }
}

/** @param {string} name */
function bar(name) {
  const item = make('li', STICKS.part(name));
  item.dataset.part = name;
  return item;
}
