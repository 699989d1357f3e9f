/** The car's last state, and the updates of each page part from it. */

import {loadSaid, t} from '../lang/words.js';
import {setAttr} from '../lib/dom.js';
import {saved} from '../lib/storage.js';
import {OLD_MS} from '../video/video.js';
import {aged, canMove, gradeOf, hasNoCamera, mostRttMs, situationOf, takenBy} from './state.js';
import {STRINGS} from './strings.js';
import {toast} from './toast.js';

/** @import {Downward, State, Welcome} from '../lib/types.js' */

export class Page {
  /**
   * @param {{link: import('./link/link.js').Link, video: import('../video/video.js').Video,
   *   controls: import('./input/controls.js').Controls, hud: import('./hud/hud.js').Hud,
   *   card: import('./hud/message_card.js').MessageCard, code: () => void,
   *   cameras: () => void, servos: () => void}} parts
   *   `video` has the large picture; `cameras`: the car has a second camera; `servos`: its camera turns
   */
  constructor(parts) {
    this.parts = parts;
    /** Loaded after the first screen. @type {import('./drawer/drawer.js').Drawer | null} */
    this.drawer = null;
    /** Loaded for a car that has one. @type {import('./second_camera.js').SecondCamera | null} */
    this.secondCamera = null;
    /** Loaded for a car that has some. @type {import('./servos/servos.js').ServoControls | null} */
    this.servos = null;
    /** @type {Welcome | null} */
    this.welcome = null;
    /** @type {State | null} */
    this.state = null;
    this.stateMs = 0;
    /** @type {import('./types.js').Situation} */
    this.situation = {kind: 'connecting', stopWaits: false};
    this.lostMs = 0;
    /** @type {string | null} */
    this.takenBy = null;
    /** We released the wheel ourselves. */
    this.released = false;
    /** We pushed STOP, and the car has not gone on since. */
    this.pushedStop = false;
    this.warnedLow = false;
    /** Since the page was opened. */
    this.drove = false;
    /** Last refusal before the menu loaded; the menu shows it. @type {import('../lib/types.js').CarError | null} */
    this.refusal = null;
    /** @type {import('./types.js').LinkGrade} */
    this.grade = 'none';
  }

  get driving() {
    return this.parts.link.up && this.state?.role === 'driver';
  }

  /** Does the car say that its camera runs? */
  get filming() {
    return this.state?.camera === 'ok';
  }

  get linkMs() {
    const {link} = this.parts;
    return link.up ? link.trips.ms(performance.now()) : null;
  }

  /** The link's round trip in ms if that is more than the car accepts; else null. */
  get lateMs() {
    const ms = this.linkMs;
    return ms !== null && this.welcome && ms > mostRttMs(this.welcome) ? ms : null;
  }

  /** Makes another picture the large one. @param {import('../video/video.js').Video} video */
  showVideo(video) {
    this.parts.video = video;
    this.drawer?.notes.restart();
  }

  /** @param {Downward} message */
  message(message) {
    if (message.kind === 'welcome') this.welcomed(message);
    else if (message.kind === 'state') this.updated(message);
    else if (message.kind === 'pass') {
      this.drawer?.unlock.passed(message);
      void keepPass(message.ticket);
    }
    else if (message.kind === 'car_name' && this.welcome) this.welcomed({...this.welcome, car: message.car, named: true});
    else if (message.kind === 'people') this.drawer?.people.update(message.people, message.unsaved);
    else if (message.kind === 'error') this.refused(message);
    else if (message.kind === 'closing') void loadSaid().then(() => toast(STRINGS.closed(message.text), 'warn'));
  }

  /** @param {Welcome} welcome */
  welcomed(welcome) {
    this.welcome = welcome;
    this.parts.hud.welcome(welcome);
    this.parts.controls.setPeriod(welcome.drive_every_ms);
    this.drawer?.welcomed(welcome);
    this.secondCamera?.welcomed();
    if (welcome.cameras?.length) this.parts.cameras();
    if (welcome.features?.includes('servos')) this.parts.servos();
  }

  /** @param {import('../lib/types.js').CarError} error */
  refused(error) {
    if (this.drawer) this.drawer.unlock.refused(error);
    else this.refusal = error;
  }

  /** @param {State} state */
  updated(state) {
    const before = this.state;
    this.state = state;
    this.stateMs = performance.now();
    const taken = takenBy(before, state, this.released);
    if (taken !== null) this.takenBy = taken;
    if (state.role === 'driver') {
      this.takenBy = null;
      if (before?.role !== 'driver') this.released = false;
    }
    // From here on our wish counts, or no longer does: it starts neutral either way.
    // A key that went down while the page loaded is meant, though.
    if (before === null) this.parts.controls.sendNeutral();
    else if (before.role !== state.role) this.parts.controls.letGo();
    this.parts.hud.state(state);
    this.drawer?.state(state);
    this.servos?.update(state);
    const news = this.drawer?.unlock.granted(before, state);
    if (news) toast(news);
    if (isEstop(before) && !isEstop(state)) this.pushedStop = false;
    const low = state.battery?.low === true;
    // The driver has a card for it.
    if (low && !this.warnedLow && state.role !== 'driver') toast(t.batteryLow, 'warn');
    this.warnedLow = low;
    this.refresh();
  }

  /** The link came up or went down. */
  linkChanged() {
    const {link, controls} = this.parts;
    if (!link.up && this.situation.kind !== 'lost') this.lostMs = performance.now();
    if (!link.up) controls.letGo();
    this.refresh();
  }

  /** Ten times a second, and on every change. */
  refresh() {
    const nowMs = performance.now();
    const {link, video, controls, hud, card} = this.parts;
    const ageMs = video.ageMs(nowMs);
    // Without a link it is the last picture, however young.
    const old = ageMs !== null && (ageMs > OLD_MS || !link.up);
    // While the car's clock is unknown, it may not be live.
    const sure = video.ageSure(nowMs);
    hud.picture(ageMs === null ? 'none' : old || !sure ? 'old' : 'live', ageMs, sure,
      hasNoCamera(this.state) ? t.noCamera : t.noPicture, STRINGS.noPicture(video));
    const {throttle, steer} = controls.wish;
    this.situation = situationOf({
      link: link.state, welcome: this.welcome, state: this.state, lostMs: this.lostMs,
      lateMs: this.lateMs, takenBy: this.takenBy, pictureOld: old, wishing: throttle !== 0 || steer !== 0,
      pushedStop: this.pushedStop, stopWaits: link.pushedStop.waiting, linkFault: link.fault,
    });
    if (!link.up) this.showAged(nowMs);
    card.update(this.situation, this.state?.may_drive === true, nowMs);
    const can = canMove(this.situation, this.driving);
    setAttr(document.body, 'data-can-move', String(can));
    this.drawer?.calibration?.setCanMove(can);
    this.drawer?.carName.update(this.situation, this.state, this.drove);
  }

  /** Shows old measurements as old. @param {number} nowMs */
  showAged(nowMs) {
    if (!this.state) return;
    const old = aged(this.state, (nowMs - this.stateMs) / 1000, t.grade.none);
    this.parts.hud.showBattery(old.battery ?? null);
    this.drawer?.state(old);
  }

  /** Ten times a second. */
  beat() {
    const {link, video, hud} = this.parts;
    const ageMs = video.ageMs(performance.now());
    const old = ageMs !== null && ageMs > OLD_MS;
    const weak = this.drawer?.linkHistory.weak === true;
    this.grade = gradeOf(link.up, ageMs, video.pictureMs, this.linkMs, weak);
    if (ageMs !== null) hud.ratio(...video.size);
    hud.link(this.grade, old ? ageMs : video.pictureMs, this.linkMs);
    void this.drawer?.awake.want(this.driving);
    this.secondCamera?.beat();
    this.refresh();
  }

  /** Reports to the car and to the drawer, once a second. */
  second() {
    this.drawer?.report(this);
  }

  /** Driving began: hides help and offers. */
  used() {
    this.drove = true;
    if (saved.get('seen') !== 'yes') saved.set('seen', 'yes');
    this.drawer?.used();
  }

  /** Stops the car for any driver. */
  stop() {
    this.pushedStop ||= !isEstop(this.state);
    this.parts.link.stop();
    this.parts.controls.letGo();
    this.refresh();
  }

  /** Runs the wheel button's current act. */
  pushWheel() {
    const {link, controls, hud, code} = this.parts;
    if (this.state?.role === 'driver') {
      controls.letGo();
      this.released = true;
      link.send({kind: 'release'});
    } else if (this.state?.may_drive) {
      this.takenBy = null;
      link.send({kind: hud.wheel.dataset.does === 'ask' ? 'ask' : 'take'});
    } else {
      code();
    }
  }
}

/** The car remembers this device, by a cookie. @param {string} ticket */
const keepPass = (ticket) =>
  fetch('api/pass', {method: 'POST', headers: {'X-Pass': ticket}}).catch(() => {});

/** @param {State | null} state */
const isEstop = (state) => state?.stop?.cause.startsWith('estop') === true;
