/** How sticks and gamepad feel on this device: curve, hands, gamepad mapping,
 * with a live picture of it. Loaded on demand. */

import {t} from '../lang/words.js';
import {make, setAttr, setText, show, svg} from '../lib/dom.js';
import {saved} from '../lib/storage.js';
import {FEEL, pushed, stick} from '../lib/curves.js';
import {actionButton, check, labelled, paragraph, row} from './fields.js';
import {STICKS} from './sticks-strings.js';

/** @typedef {keyof typeof FEEL.pad} Role */

const LOOK_MS = 50;
/** So far an axis, or a button, has to go from where it was to be meant. */
const MEANT = 0.6;
const WIDE = 120;

const keep = () => saved.set('sticks', JSON.stringify(
  {expo: FEEL.expo, leftHanded: FEEL.leftHanded, pad: FEEL.pad}));

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
  const field = document.createElement('input');
  Object.assign(field, {type: 'range', min: '0', max: '1', step: '0.05', value: String(FEEL.expo)});
  field.dataset.testid = 'expo';
  const curve = svg('path', {class: 'curve picture'});
  const picture = svg('svg', {viewBox: `0 0 ${WIDE} ${WIDE}`, width: WIDE, height: WIDE, 'aria-hidden': 'true'});
  picture.append(svg('path', {d: `M0 ${WIDE}H${WIDE}`, class: 'rail'}), curve);
  const draw = () => {
    const points = Array.from({length: 25}, (_, index) =>
      `${(index * WIDE) / 24} ${WIDE - stick(index / 24) * WIDE}`);
    setAttr(curve, 'd', `M${points.join('L')}`);
    setAttr(field, 'aria-valuetext', STICKS.expo(FEEL.expo));
  };
  field.addEventListener('input', () => {
    FEEL.expo = Number(field.value);
    draw();
    keep();
  });
  draw();
  return row([labelled(t.sticks.expoLabel, field), picture], 'expo');
}

function gamepad() {
  const box = make('div', '');
  const says = paragraph('');
  says.setAttribute('role', 'status');
  says.dataset.testid = 'gamepad-says';
  const bars = make('ul', '');
  bars.className = 'bars';
  /** @type {Role | null} */
  let learning = null;
  /** @type {Map<string, number>} */
  let before = new Map();
  let count = -1;
  const roles = /** @type {Role[]} */ (Object.keys(FEEL.pad)).map((role) => {
    const label = make('span', '');
    const ask = actionButton(t.sticks.change, () => {
      learning = learning === role ? null : role;
      FEEL.learning = learning !== null;
      before = new Map();
    }, `role-${role}`);
    ask.setAttribute('aria-label', STICKS.changeOf(role));
    return {role, label, ask, element: row([label, ask])};
  });
  const look = () => {
    if (box.offsetWidth === 0) {
      FEEL.learning = false;  // the sheet is closed: a gamepad drives again
      clearInterval(timer);
      return;
    }
    const pad = [...navigator.getGamepads()].find((one) => one && one.connected !== false);
    for (const one of [bars, ...roles.map(({element}) => element)]) show(one, Boolean(pad));
    setText(says, !pad ? t.sticks.none : learning ? STICKS.pushNow(learning) : STICKS.here(pad.id));
    for (const {role, label} of roles) setText(label, STICKS.role(role, FEEL.pad[role]));
    if (!pad) return;
    const now = parts(pad);
    if (now.size !== count) {
      count = now.size;
      bars.replaceChildren(...[...now.keys()].map((name) => bar(name)));
    }
    for (const item of bars.children) {
      const value = now.get(/** @type {HTMLElement} */ (item).dataset.part ?? '') ?? 0;
      /** @type {HTMLElement} */ (item).style.setProperty('--way', value.toFixed(2));
    }
    if (!learning) return;
    if (before.size === 0) before = now;
    const part = movedPart(before, now);
    if (part === null) return;
    Object.assign(FEEL.pad, assigned(FEEL.pad, learning, part));
    learning = null;
    FEEL.learning = false;
    keep();
  };
  const timer = setInterval(look, LOOK_MS);
  box.append(says, ...roles.map(({element}) => element), bars);
  setTimeout(look);
  return box;
}

/** @param {string} name */
function bar(name) {
  const item = make('li', STICKS.part(name));
  item.dataset.part = name;
  return item;
}
