/** Wiring only: this page has one socket, /ws/buttons, and no way to the motors. */

import {t} from '../lang/words.js';
import {Awake} from '../lib/awake.js';
import {Drawing, LOOKS} from './draw.js';
import {Fingers} from './fingers.js';
import {Hold} from './hold.js';
import {Link} from './link.js';
import {GLOW_MS, Model} from './model.js';
import {Sound} from './sound.js';

/** How long the screen stays awake after the last push. */
const PLAYED_MS = 180_000;
const CHANGES = 100;

/** @param {string} id */
const byId = (id) => {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no #${id} in buttons.html`);
  return element;
};
document.title = byId('heading').textContent = t.buttons.title;
const model = new Model();
const drawing = new Drawing(byId);
const sound = new Sound();
const awake = new Awake({playing: () => false, changed: () => undefined});
const fpvcar = {lit: 0, link: 'none', changes: /** @type {[number, number][]} */ ([])};
let usedMs = performance.now();

/** Draws the lit buttons at once, from every event handler. */
const show = () => {
  const nowMs = performance.now();
  const lit = model.shown(nowMs);
  drawing.light(lit);
  drawing.mode(model.glow, sound.on);
  fpvcar.link = link.up ? 'up' : 'none';
  if (lit === fpvcar.lit) return;
  fpvcar.lit = lit;
  fpvcar.changes.push([performance.timeOrigin + nowMs, lit]);
  if (fpvcar.changes.length > CHANGES) fpvcar.changes.shift();
};

const link = new Link({
  held: () => model.held,
  changed: () => {
    if (!link.up) model.lost();
    show();
  },
  heard: (message) => {
    if (message.kind === 'panel') {
      drawing.build(message.buttons);
      drawing.name(message.car);
    } else if (message.kind === 'glow') {
      const {tones, jingle} = model.heard(message, performance.now());
      for (const button of tones) sound.tone(button, 0.5);
      if (jingle) sound.jingle(jingle);
    } else if (message.kind === 'error') {
      console.warn(message.what);
    }
    show();
  },
});

/** @param {string} who @param {number} button -1: no button */
const moved = (who, button) => {
  const what = model.finger(who, button, performance.now());
  if (!what) return;
  show();
  link.hold();
  sound.wake();
  if (what === 'push') pushed(button);
};

/** @param {number} button */
const pushed = (button) => {
  usedMs = performance.now();
  if (model.open) {
    sound.tone(button, 1);
    navigator.vibrate?.(25);
  }
  setTimeout(show, GLOW_MS + 1);
};

const released = () => {
  if (!model.release()) return;
  show();
  link.hold();
};

new Fingers({
  stage: byId('stage'), moved, released,
  tapped: (button) => {
    if (button < 0) return;
    moved('reader', button);
    setTimeout(() => moved('reader', -1), GLOW_MS);
  },
});

/** @param {string} id @param {() => void} act */
const tool = (id, act) => byId(id).addEventListener('click', () => {
  usedMs = performance.now();
  sound.wake();
  act();
  show();
});
tool('rainbow', () =>
  link.send({kind: 'choose', mode: model.mode === 'rainbow' ? 'free' : 'rainbow'}));
tool('game', () => link.send({
  kind: 'choose', mode: ['free', 'rainbow'].includes(model.mode) ? 'game' : 'free',
}));
tool('sound', () => sound.toggle());

const seat = byId('seat');
seat.setAttribute('aria-label', t.buttons.seat);
seat.title = t.buttons.seat;
new Hold(seat, () => location.assign('./'));

const look = () => {
  if (document.visibilityState === 'visible') {
    link.start();
  } else {
    released();
    link.stop();
  }
};
document.addEventListener('visibilitychange', look);
addEventListener('pagehide', () => {
  released();
  link.stop();
});
addEventListener('pageshow', look);
for (const event of ['contextmenu', 'gesturestart', 'dragstart', 'selectstart']) {
  addEventListener(event, (happened) => happened.preventDefault());
}
setInterval(() => {
  const plays = model.mode !== 'free' || performance.now() - usedMs < PLAYED_MS;
  void awake.want(plays);
}, 1000);

drawing.build(LOOKS);
show();
look();
/** Read-only state for tests and debugging. */
Object.defineProperty(window, 'fpvcar', {
  value: Object.freeze({
    get lit() {
      return fpvcar.lit;
    },
    get mode() {
      return model.mode;
    },
    get link() {
      return fpvcar.link;
    },
    get glow() {
      return model.glow;
    },
    /** The last changes: wall clock in ms, and the mask of lit buttons since then. */
    get changes() {
      return fpvcar.changes.map((change) => [...change]);
    },
  }),
});
