/** The instruments over the picture: driver, link, battery, lights, gauges, age. */

import {said, t} from '../../lang/words.js';
import {button, byId, drawing, setAttr, setText, show} from '../../lib/dom.js';
import {STRINGS} from '../strings.js';

/** @import {Battery, State, Welcome, Wish} from '../../lib/types.js' */

const OLD_S = 1;

export class Hud {
  constructor() {
    this.who = byId('who');
    this.wheel = button('wheel');
    this.chip = button('link-chip');
    this.lights = button('lights');
    this.battery = byId('battery');
    this.age = byId('age');
    this.noPicture = byId('no-picture');
    /** The limit in force for the driver. */
    this.max = '';
    this.unguarded = false;
    /** Draws the chip's curve, once the drawer has come. @type {(ms: number | null) => void} */
    this.spark = () => {};
  }

  /** @param {Welcome} welcome */
  welcome(welcome) {
    setText(byId('car'), welcome.car);
    document.title = STRINGS.title(welcome.car);
    setText(byId('heading'), document.title);
    show(this.lights, welcome.has_lights);
    this.unguarded = welcome.unguarded === true;
    this.ratio(welcome.width, welcome.height);
  }

  /**
   * Gives the windscreen the picture's aspect ratio.
   * @param {number} width @param {number} height
   */
  ratio(width, height) {
    const {style} = document.body;
    const ratio = `${width} / ${height}`;
    if (width && style.getPropertyValue('--ratio') !== ratio) style.setProperty('--ratio', ratio);
  }

  /** @param {State} state */
  state(state) {
    const driving = state.role === 'driver';
    setText(this.who, driving ? t.you
      : state.driver === null ? t.nobody : STRINGS.drives(state.driver));
    const asks = t.ask && !state.seat_free && !state.grown_up;  // t.ask loads later
    const [does, long, short] = driving ? ['release', t.give, t.giveShort]
      : !state.may_drive ? ['code', t.enterCode, t.codeShort]
        : asks ? ['ask', t.ask, t.askShort] : ['take', t.take, t.takeShort];
    this.wheel.disabled = does === 'ask' && !!state.asking;
    setAttr(document.body, 'data-role', state.role);
    setAttr(this.wheel, 'data-does', does);
    setAttr(this.wheel, 'aria-label', long);
    setText(byId('wheel-long'), long);
    setText(byId('wheel-short'), short);
    show(this.wheel, true);
    setAttr(this.lights, 'aria-pressed', String(state.settings.head_lights));
    this.max = STRINGS.max(state.limit);
    setText(byId('max'), driving ? STRINGS.max(state.limit, state.guard, this.unguarded) : '');
    this.showBattery(state.battery ?? null);
  }

  /** @param {Battery | null} battery */
  showBattery(battery) {
    show(this.battery, battery !== null);
    if (!battery) return;
    const {volts, share, low, age_s: ageS = 0, state = 'ok'} = battery;
    // An old reading never looks like a fresh one.
    const old = state !== 'ok' || ageS === null || ageS > OLD_S;
    setText(byId('volts'), STRINGS.battery(volts, share, low, old ? ageS ?? 0 : null));
    setAttr(this.battery, 'title', said(state));
    this.battery.classList.toggle('low', low);
    this.battery.classList.toggle('old', old);
    setAttr(drawing('charge'), 'width', (24 * Math.max(0.04, Math.min(1, share ?? 0))).toFixed(1));
  }

  /**
   * @param {import('../types.js').LinkGrade} grade
   * @param {number | null} pictureMs @param {number | null} linkMs
   */
  link(grade, pictureMs, linkMs) {
    setAttr(document.body, 'data-link', grade);
    setText(byId('grade-word'), t.grade[grade]);
    setText(byId('picture-ms'), STRINGS.ms(pictureMs));
    setText(byId('link-ms'), STRINGS.ms(linkMs));
    setAttr(this.chip, 'title', t.gradeLong[grade]);
    setAttr(this.chip, 'aria-label', STRINGS.chip(grade, pictureMs, linkMs));
    this.spark(pictureMs);
  }

  /**
   * Shows the picture as live, old (grey, with its age) or none.
   * @param {'live' | 'old' | 'none'} kind @param {number | null} ageMs
   * @param {boolean} sure false: `ageMs` is a lower bound
   * @param {string} none reason for no picture
   * @param {string} trouble the fault that keeps new pictures away; '' if none is known
   */
  picture(kind, ageMs, sure, none, trouble) {
    setAttr(document.body, 'data-picture', kind);
    show(this.age, kind === 'old');
    if (kind === 'old' && ageMs !== null) {
      setText(this.age, STRINGS.old(ageMs / 1000, sure) + (trouble && ` · ${trouble}`));
    }
    show(this.noPicture, kind === 'none');
    setText(this.noPicture, trouble || none);
  }

  /** Draws the driver's wish at once, before the car answers. @param {Wish} wish */
  wish({throttle, steer}) {
    setText(byId('drive-says'), throttle === 0 ? `${t.drive} · ${this.max}` : STRINGS.drivePercent(throttle));
    setText(byId('steer-says'), STRINGS.steerPercent(steer));
    setAttr(drawing('gauge-drive'), 'd', throttle ? `M10 22V${(22 - 19 * throttle).toFixed(1)}` : '');
    setAttr(drawing('gauge-steer'), 'd', steer ? `M44 10H${(44 - 40 * steer).toFixed(1)}` : '');
  }
}
