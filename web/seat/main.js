/** Wiring only: builds every part and hands each its collaborators. Start reading here. */

import {t} from '../lang/words.js';
import {button, byId, fillStrings, make} from '../lib/dom.js';
import {clientId, saved} from '../lib/storage.js';
import {Video} from '../video/video.js';
import {MessageCard} from './hud/message_card.js';
import {Controls} from './input/controls.js';
import {FullScreen} from './hud/fullscreen.js';
import {Hud} from './hud/hud.js';
import {FEEL, feel} from '../lib/curves.js';
import {Keyboard} from './input/keyboard.js';
import {Pad} from './input/touch.js';
import {LazyPart} from './lazy.js';
import {Link} from './link/link.js';
import {Page} from './view.js';
import {exposeState} from './debug_api.js';
import {STRINGS, plain} from './strings.js';
import {toast} from './toast.js';

const DRAWER_AFTER_MS = 1000;

fillStrings(document, t);
feel(saved.get('sticks'));
document.body.classList.toggle('left-handed', FEEL.leftHanded);
document.body.classList.toggle('whole', saved.get('whole') === 'yes');
const used = (/** @type {string} */ how) => {
  document.body.dataset.input = how;
  page.used();
};

const hud = new Hud();
/** @type {Link} */
const link = new Link({
  client: clientId(),
  hello: () => ({name: plain(saved.get('name'))}),
  on: {
    message: (message) => page.message(message),
    frame: (bytes) => video.frame(bytes),
    welcomed: () => controls.restart(),
    filming: () => page.filming,
    changed: () => page.linkChanged(),
  },
});
const video = new Video({
  canvas: byId('picture', HTMLCanvasElement),
  video: byId('picture-mse', HTMLVideoElement),
  wanted: new URLSearchParams(location.search).get('path'),
  requestKey: () => link.requestKey(),
  requestFps: (most) => link.requestFps(most),
  ageMs: (captureUs, nowMs) => link.clock.ageMs(captureUs, nowMs),
  changed: () => {
    if (document.body.dataset.picture !== 'live') page.refresh();
  },
});
const controls = new Controls({
  send: (message) => link.send(message),
  nonce: () => link.seen.nonce,
  late: () => page.lateMs !== null,
  driving: () => page.driving,
  changed: (wish) => hud.wish(wish),
});
const stop = () => {
  page.drawer?.panels.closeAll();
  page.stop();
  navigator.vibrate?.(60);
};
/** Esc closes the open panel; without one it stops the car. */
const escape = () => {
  if (!page.drawer?.panels.closeTop()) stop();
};
const lights = () => link.send({kind: 'lights'});
const code = () => {
  link.send({kind: 'take'});  // an LED of the car blinks the code to people beside it
  drawer.push(() => page.drawer?.unlock.open());
};
const full = new FullScreen({
  // A watcher closing the picture by the button does not affect the driver.
  left: (byUs) => {
    if (!byUs) escape();
    else if (page.driving) stop();
  },
});
/** @param {import('../lib/types.js').Command} name */
const command = (name) => {
  if (name === 'lights') lights();
  else if (name === 'camera') page.secondCamera?.swap();
  else if (name === 'full') full.toggle();
  else if (name === 'keys') drawer.push(() => page.drawer?.panels.toggle('keys'));
  else drawer.push(() => page.drawer?.marks[name]());
};
const keyboard = new Keyboard({
  set: (wish) => controls.set('keys', wish),
  stop, escape, command,
  used: () => used('keys'),
});
const thumbs = {throttle: 0, steer: 0};
const pads = [
  new Pad({
    element: byId('pad-drive'), axis: 'y', used: () => used('touch'),
    set: (throttle) => controls.set('touch', Object.assign(thumbs, {throttle})),
  }),
  new Pad({
    element: byId('pad-steer'), axis: 'x', used: () => used('touch'),
    set: (steer) => controls.set('touch', Object.assign(thumbs, {steer})),
  }),
];
const card = new MessageCard({
  resume: () => link.send({kind: 'resume'}),
  take: () => page.pushWheel(),
  code,
  here: () => link.wake(),
  watch: () => page.pushWheel(),
  keysBusy: () => keyboard.busy,
});
/** @type {Page} */
const page = new Page({
  link, video, controls, hud, card, code,
  cameras: () => setTimeout(() => void secondCamera.fetch(), DRAWER_AFTER_MS),
  servos: () => setTimeout(() => void servos.fetch(), DRAWER_AFTER_MS),
});

/** Loads after the first screen. */
const drawer = new LazyPart({
  load: async (tries) => {
    // Some browsers cache a failed module load; another name makes them retry.
    /** @type {typeof import('./drawer/drawer.js')} */
    const part = await import(`./drawer/drawer.js${tries ? `?again=${tries}` : ''}`);
    return {...part, texts: await part.loadMarkup()};
  },
  use: ({Drawer, addMarkup, texts}) => {
    addMarkup(texts);
    page.drawer = new Drawer({
      send: (message) => link.send(message),
      given: () => (page.released = true),
      keysBusy: () => keyboard.busy,
      reversing: () => page.driving && controls.wish.throttle < 0,
      take: () => link.send({kind: 'take'}),
      get video() {
        return page.parts.video;
      },
      controls, hud, link,
      tilt: (steer) => controls.set('tilt', {throttle: 0, steer}),
    });
    page.secondCamera?.addSwitch();
    page.servos?.addControls();
    if (page.welcome) page.drawer.welcomed(page.welcome);
    if (page.state) page.drawer.state(page.state);
    if (page.refusal) page.drawer.unlock.refused(page.refusal);
  },
  late: () => toast(t.menuLate, 'warn'),
  broken: () => toast(t.menuBroken, 'warn'),
});

/** @type {import('./input/gamepad.js').Gamepads | null} */
let gamepads = null;
/**
 * A part without a button, which loads after the first screen, too.
 * @template T @param {(again: string) => Promise<T>} load @param {(part: T) => void} use
 */
const quiet = (load, use) => new LazyPart({
  load: (tries) => load(tries ? `?again=${tries}` : ''), use, late: () => undefined,
});
const quietParts = [
  quiet((again) => import(`./link/redundant_link.js${again}`),
    (/** @type {typeof import('./link/redundant_link.js')} */ {RedundantLink}) => {
      link.redundant = new RedundantLink(link);
    }),
  quiet((again) => import(`../video/held.js${again}`),
    (/** @type {typeof import('../video/held.js')} */ {HeldRemedy}) => {
      video.held = new HeldRemedy(video);
    }),
  quiet((again) => import(`./input/gamepad.js${again}`),
    (/** @type {typeof import('./input/gamepad.js')} */ {Gamepads}) => {
      gamepads = new Gamepads({
        set: (wish) => controls.set('gamepad', wish),
        stop, command,
        came: (name) => toast(STRINGS.gamepad(name)),
        gone: () => {
          controls.letGo();
          toast(t.gamepadGone, 'warn');
        },
        used: () => used('gamepad'),
        look: (pad) => page.servos?.gamepad(pad),
      });
      gamepads.listen(window);
      if (timers.length > 0) gamepads.awake();
    }),
];
/** Loads for a car that has one. */
const secondCamera = quiet(async (again) => {
  /** @type {typeof import('./second_camera.js')} */
  const part = await import(`./second_camera.js${again}`);
  return {...part, style: await part.loadStyle()};
}, ({SecondCamera, style}) => {
  document.body.append(make('style', style));
  page.secondCamera = new SecondCamera(page.welcome?.cameras[0] ?? '', page);
  if (page.drawer) page.secondCamera.addSwitch();
});
/** Loads for a car that has servos which do not steer. */
const servos = quiet(async (again) => {
  /** @type {typeof import('./servos/servos.js')} */
  const part = await import(`./servos/servos.js${again}`);
  return {...part, style: await part.loadStyle()};
}, ({ServoControls, style}) => {
  document.body.append(make('style', style));
  page.servos = new ServoControls(page, keyboard);
  if (page.drawer) page.servos.addControls();
});

controls.releases.push(
  () => keyboard.release(), () => gamepads?.release(), () => page.servos?.release(),
  () => {
    for (const pad of pads) pad.release();
    Object.assign(thumbs, {throttle: 0, steer: 0});
  },
);
controls.beats.push(() => (keyboard.busy ? keyboard.sendWish() : undefined));
keyboard.listen(window);
/** Whether a finger was seen on STOP: one may lie there since before this module. */
let touched = false;
button('stop').addEventListener('pointerdown', () => {
  touched = true;
  stop();
});
button('stop').addEventListener('click', ({detail}) => (detail === 0 || !touched ? stop() : undefined));
button('wheel').addEventListener('click', () => page.pushWheel());
button('lights').addEventListener('click', lights);
for (const [id, tab] of [['gear', ''], ['link-chip', 'tab-picture']]) {
  button(id).addEventListener('click', () => drawer.push(() => page.drawer?.toggle(tab)));
}
if (matchMedia('(pointer: coarse)').matches) document.body.dataset.input = 'touch';

/** Timers run only while the page is visible. @type {number[]} */
let timers = [];
const wakeUp = () => {
  if (timers.length > 0) return;
  timers = [setInterval(() => page.beat(), 100), setInterval(() => page.second(), 1000)].map(Number);
  video.setVisible(true);
  page.secondCamera?.setVisible(true);
  link.awake();
  controls.awake();
  gamepads?.awake();
  // At once: the picture on the glass is from before the sleep.
  page.refresh();
};
const goToSleep = () => {
  controls.letGo();
  timers.forEach(clearInterval);
  timers = [];
  video.setVisible(false);
  page.secondCamera?.setVisible(false);
  link.asleep();
  controls.asleep();
  gamepads?.asleep();
  void page.drawer?.awake.want(false);
};
const updateVisible = () => (document.visibilityState === 'hidden' ? goToSleep() : wakeUp());
document.addEventListener('visibilitychange', updateVisible);
addEventListener('blur', () => controls.letGo());
// The pads are elsewhere now, and a thumb that stayed would be far from where it landed.
screen.orientation?.addEventListener('change', () => controls.letGo());
addEventListener('pagehide', () => {
  goToSleep();
  link.close();
});
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  link.wake();
  wakeUp();
});
addEventListener('contextmenu', (event) => event.preventDefault());
addEventListener('gesturestart', (event) => event.preventDefault());

link.start();
updateVisible();
exposeState({link, page, controls});
setTimeout(() => {
  void drawer.fetch();
  for (const part of quietParts) void part.fetch();
}, DRAWER_AFTER_MS);
