/** Turns the camera by its pan and tilt servos, and shows where it looks. Other servos have a slider
 * in the menu. Loads after the first screen, for a car that has servos which do not steer.
 *
 *   keys, stick, gamepad, phone -> look message -> the car, which limits angles and speed
 */

import {fill, loadSaid, loadTexts, number, said, t} from '../../lang/words.js';
import {CameraDirection} from '../../lib/camera_direction.js';
import {byId, capture, make, setAttr, setText, show} from '../../lib/dom.js';
import {clamp, stick} from '../../lib/curves.js';
import {Tilt} from '../input/tilt.js';
import {toast} from '../toast.js';
import {STILL, isStill, keyTurn, padTurn, pointing, strongest, turned} from './aim.js';

/** @import {State} from '../../lib/types.js' */
/** @import {Turn} from './aim.js' */
/** @import {Servo} from '../../lib/camera_direction.js' */
/** @typedef {{servos: Record<string, Servo>, viewers: boolean, state?: State['wheels']}} Servos */

const EVERY_MS = 40;
/** A mouse reports more moves than the car takes messages. */
const LEAST_MS = 16;
/** A thumb's way to full speed; a push that moves less is a tap. */
const TRAVEL_PX = 44;
const TAP_PX = 6;

/** Loads texts and style. Throws TypeError if they do not arrive. */
export async function loadStyle() {
  const [answer] = await Promise.all([
    fetch(new URL('servos.css', import.meta.url)), loadTexts('drawer'),
  ]);
  if (!answer.ok) throw new TypeError(`servos.css: ${answer.status}`);
  return answer.text();
}

export class ServoControls {
  /**
   * @param {import('../view.js').Page} page
   * @param {import('../input/keyboard.js').Keyboard} keyboard
   */
  constructor(page, keyboard) {
    this.page = page;
    this.link = page.parts.link;
    this.keyboard = keyboard;
    /** @type {Servos} */
    this.now = {servos: {}, viewers: false};
    /** The fault shown last. */
    this.warned = /** @type {string | undefined} */ ('');
    /** @type {Map<string, Turn>} */
    this.sources = new Map();
    this.sent = STILL;
    this.sentMs = -Infinity;
    this.timer = 0;
    this.pressed = false;
    /** Where the thumb landed. @type {{id: number, x: number, y: number, moved: boolean} | null} */
    this.thumb = null;
    /** The phone's direction that is straight ahead. @type {Turn | null} */
    this.ahead = null;
    this.followed = STILL;
    this.oriented = (/** @type {DeviceOrientationEvent} */ event) => this.follow(event);
    this.direction = new CameraDirection();
    this.button = make('button', '');
    this.button.id = 'look';
    this.button.className = 'plate';
    this.button.hidden = true;
    this.button.append(this.direction.element);
    byId('stop').before(this.button);
    /** Sliders of the servos besides pan and tilt, by name. @type {Map<string, HTMLInputElement>} */
    this.sliders = new Map();
    /** @type {HTMLInputElement | null} */
    this.viewers = null;
    this.listen();
    if (page.state) this.update(page.state);
  }

  get mayLook() {
    return this.page.driving || (this.link.up && this.now.viewers);
  }

  listen() {
    const {button} = this;
    button.addEventListener('pointerdown', (event) => {
      if (this.thumb || event.button > 0 || !capture(button, event.pointerId)) return;
      event.preventDefault();
      this.thumb = {id: event.pointerId, x: event.clientX, y: event.clientY, moved: false};
      button.classList.add('held');
    });
    button.addEventListener('pointermove', (event) => {
      const {thumb} = this;
      if (thumb?.id !== event.pointerId) return;
      const [left, up] = [thumb.x - event.clientX, thumb.y - event.clientY];
      thumb.moved ||= Math.hypot(left, up) > TAP_PX;
      const share = (/** @type {number} */ way) => stick(clamp(way / TRAVEL_PX));
      if (thumb.moved) this.set('stick', {pan: share(left), tilt: share(up)});
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      button.addEventListener(end, (event) => {
        const {thumb} = this;
        if (thumb?.id !== /** @type {PointerEvent} */ (event).pointerId) return;
        this.letGo();
        if (end === 'pointerup' && !thumb.moved) this.goRest();
      });
    }
    button.addEventListener('click', ({detail}) => (detail === 0 ? this.goRest() : undefined));
  }

  letGo() {
    this.thumb = null;
    this.button.classList.remove('held');
    this.set('stick', STILL);
  }

  /** Forgets every wish: after STOP, without focus or link. */
  release() {
    this.thumb = null;
    this.button.classList.remove('held');
    this.sources.clear();
    this.send();
  }

  /** @param {string} source @param {Turn} turn */
  set(source, turn) {
    this.sources.set(source, turn);
    this.send();
  }

  /** The gamepad that drives. @param {Pick<Gamepad, 'axes' | 'buttons' | 'mapping'>} pad */
  gamepad(pad) {
    const {rest, ...turn} = padTurn(pad);
    if (rest && !this.pressed) this.goRest();
    this.pressed = rest;
    if (!isStill(turn) || this.sources.has('gamepad')) this.set('gamepad', turn);
  }

  /** Sends the present wish: at once if one begins or ends, else every 40 ms. */
  send() {
    const nowMs = performance.now();
    const turn = strongest([...this.sources.values(), keyTurn(this.keyboard.looks, nowMs)]);
    const edge = isStill(turn) !== isStill(this.sent);
    if (isStill(turn) && !edge) return;
    if (!edge && nowMs - this.sentMs < LEAST_MS) return;
    clearTimeout(this.timer);
    this.timer = isStill(turn) ? 0 : Number(setTimeout(() => this.send(), EVERY_MS));
    this.sent = turn;
    this.sentMs = nowMs;
    this.tell({turn: this.own(turn)});
  }

  /** The values of the axes that this car has. @param {Turn} turn @returns {Record<string, number>} */
  own(turn) {
    return Object.fromEntries(Object.entries(turn).filter(([name]) => name in this.now.servos));
  }

  /** @param {{turn?: Record<string, number>, to?: Record<string, number>, rest?: boolean}} wish */
  tell(wish) {
    if (this.mayLook) this.link.send({kind: 'look', seen: this.link.seen.nonce, ...wish});
  }

  goRest() {
    this.ahead = null;
    this.tell({rest: true});
  }

  /** The camera follows the phone. @param {DeviceOrientationEvent} event */
  follow({alpha, beta, gamma}) {
    if (alpha === null || beta === null || gamma === null) return;
    const at = pointing(alpha, beta, gamma);
    this.ahead ??= at;
    const nowMs = performance.now();
    if (nowMs - this.sentMs < EVERY_MS || !isStill(this.sent)) return;
    const way = turned(this.ahead, at);
    const {pan, tilt} = this.now.servos;
    const to = {pan: angle(pan, way.pan), tilt: angle(tilt, way.tilt)};
    if (to.pan === this.followed.pan && to.tilt === this.followed.tilt) return;
    this.sentMs = nowMs;
    this.followed = to;
    this.tell({to: this.own(to)});
  }

  /** @param {State} state */
  update(state) {
    const now = /** @type {Servos | undefined} */ (state.parts?.servos);
    if (!now) return;
    this.now = now;
    const {pan, tilt} = now.servos;
    show(this.button, Boolean(pan || tilt));
    if (pan || tilt) this.keyboard.camera ??= {turn: () => this.send(), rest: () => this.goRest()};
    setAttr(this.button, 'aria-disabled', String(!this.mayLook));
    this.direction.draw(pan, tilt);
    const {look, hint} = t.servos;
    const fault = this.faultOf(now);
    this.button.classList.toggle('fault', fault !== '');
    setAttr(this.button, 'aria-label', fault || (this.mayLook ? `${look}. ${hint}` : look));
    setAttr(this.button, 'title', fault || hint);
    if (!this.viewers) return;
    this.viewers.checked = now.viewers;
    show(this.viewers.closest('label') ?? this.viewers, state.grown_up);
    for (const [name, servo] of Object.entries(now.servos)) {
      if (name === 'pan' || name === 'tilt') continue;
      const slider = this.sliders.get(name) ?? this.addSlider(name, servo);
      slider.disabled = !this.mayLook;
      if (document.activeElement !== slider) slider.value = String(servo.deg);
    }
  }

  /** The words for a fault, which a toast shows once; '' for none. @param {Servos} servos */
  faultOf({state}) {
    const words = () => said(state) && fill(t.servos.fault, {fault: said(state)});
    const key = JSON.stringify(state);
    if (key !== this.warned && said(state)) void loadSaid().then(() => toast(words(), 'warn'));
    this.warned = key;
    return words();
  }

  /** Adds a servo's slider to the menu. @param {string} name @param {Servo} servo */
  addSlider(name, servo) {
    const label = document.createElement('label');
    label.textContent = name;
    const slider = document.createElement('input');
    Object.assign(slider, {type: 'range', min: servo.least_deg, max: servo.most_deg, step: 1});
    slider.id = label.htmlFor = `servo-${name}`;
    slider.addEventListener('input', () => {
      const deg = Number(slider.value);
      setAttr(slider, 'aria-valuetext', fill(t.servos.degrees, {degrees: number(deg)}));
      this.tell({to: {[name]: deg}});
    });
    this.sliders.set(name, slider);
    byId('tilt-row').after(label, slider);
    return slider;
  }

  /** Adds the switches for phone and viewers, and the sliders, to the menu. */
  addControls() {
    const texts = t.servos;
    if (Tilt.available) {
      const box = check('look-phone', texts.phone);
      box.checked = false;
      byId('tilt-row').after(box.closest('label') ?? box);
      box.addEventListener('change', () => void this.setPhone(box));
    }
    this.viewers = check('let-look', texts.viewers);
    byId('car-care').after(this.viewers.closest('label') ?? this.viewers);
    this.viewers.addEventListener('change', () =>
      this.link.send({kind: 'let_look', on: this.viewers?.checked === true}));
    if (this.page.state) this.update(this.page.state);
  }

  /** @param {HTMLInputElement} box */
  async setPhone(box) {
    const asking = /** @type {import('../input/tilt.js').Asking} */ (/** @type {unknown} */ (DeviceOrientationEvent));
    if (box.checked && asking.requestPermission && await asking.requestPermission() !== 'granted') {
      box.checked = false;
    }
    this.ahead = null;
    if (box.checked) addEventListener('deviceorientation', this.oriented);
    else removeEventListener('deviceorientation', this.oriented);
  }
}

/** The angle so far from a servo's rest, within its limits. @param {Servo | undefined} servo @param {number} way */
const angle = (servo, way) => (servo
  ? Math.round(Math.max(servo.least_deg, Math.min(servo.most_deg, servo.rest_deg + way))) : 0);

/** A switch with its label. @param {string} id @param {string} text */
function check(id, text) {
  const label = make('label', '');
  label.className = 'check';
  const box = document.createElement('input');
  Object.assign(box, {type: 'checkbox', id});
  const says = make('span', '');
  setText(says, text);
  label.append(box, ' ', says);
  return box;
}
