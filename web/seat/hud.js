/** The windscreen's instruments: who, link, battery, lights, gauges, age of the picture. */

import {button, byId, drawing, mark, say, show} from '../lib/dom.js';
import {sparkline} from './sparkline.js';
import {WORDS} from './strings.js';

const SPARK_MOST = 60;
const OLD_S = 1;

export class Hud {
  constructor() {
    this.who = byId('who');
    this.wheel = button('wheel');
    this.chip = button('link-chip');
    this.lights = button('lights');
    this.horn = button('horn');
    this.battery = byId('battery');
    this.age = byId('age');
    this.noPicture = byId('no-picture');
    /** @type {(number | null)[]} */
    this.spark = [];
  }

  /** @param {import('../lib/types.js').Welcome} welcome */
  welcome(welcome) {
    say(byId('car'), welcome.car);
    document.title = WORDS.title(welcome.car);
    say(byId('heading'), document.title);
    show(this.lights, welcome.has_lights);
    show(this.horn, welcome.has_horn);
    this.ratio(welcome.width, welcome.height);
  }

  /** The windscreen takes the picture's shape. @param {number} width @param {number} height */
  ratio(width, height) {
    const {style} = document.body;
    const ratio = `${width} / ${height}`;
    if (width && style.getPropertyValue('--ratio') !== ratio) style.setProperty('--ratio', ratio);
  }

  /** @param {import('../lib/types.js').State} state */
  state(state) {
    const driving = state.role === 'driver';
    say(this.who, driving ? WORDS.you
      : state.driver === null ? WORDS.nobody : WORDS.drives(state.driver));
    const [does, long, short] = driving ? ['release', WORDS.give, WORDS.giveShort]
      : state.may_drive ? ['take', WORDS.take, WORDS.takeShort]
        : ['code', WORDS.enterCode, WORDS.codeShort];
    mark(document.body, 'data-role', state.role);
    mark(this.wheel, 'data-does', does);
    mark(this.wheel, 'aria-label', long);
    say(byId('wheel-long'), long);
    say(byId('wheel-short'), short);
    show(this.wheel, true);
    mark(this.lights, 'aria-pressed', String(state.head_lights));
    this.power(state.battery ?? null);
  }

  /** @param {import('../lib/types.js').Battery | null} battery */
  power(battery) {
    show(this.battery, battery !== null);
    if (!battery) return;
    const {volts, low, age_s: ageS = 0, state = 'ok'} = battery;
    // An old reading never looks like one of now.
    const old = state !== 'ok' || ageS === null || ageS > OLD_S;
    say(byId('volts'), WORDS.battery(volts, low, old ? ageS ?? 0 : null));
    mark(this.battery, 'title', state === 'ok' ? '' : state);
    this.battery.classList.toggle('low', low);
    this.battery.classList.toggle('old', old);
    const share = Math.max(0.04, Math.min(1, battery.share ?? 0));
    mark(drawing('charge'), 'width', (24 * share).toFixed(1));
  }

  /**
   * @param {import('./state.js').LinkGrade} grade
   * @param {number | null} pictureMs @param {number | null} linkMs
   */
  link(grade, pictureMs, linkMs) {
    mark(document.body, 'data-link', grade);
    say(byId('grade-word'), WORDS.grade[grade]);
    say(byId('picture-ms'), WORDS.ms(pictureMs));
    say(byId('link-ms'), WORDS.ms(linkMs));
    mark(this.chip, 'title', WORDS.gradeLong[grade]);
    mark(this.chip, 'aria-label', WORDS.chip(grade, pictureMs, linkMs));
    this.spark.push(pictureMs);
    if (this.spark.length > SPARK_MOST) this.spark.shift();
    mark(drawing('spark'), 'd', sparkline(this.spark, SPARK_MOST, {width: 72, height: 16, high: 120}));
  }

  /**
   * Live, old (grey, with its age) or none; an old picture never looks live.
   * @param {'live' | 'old' | 'none'} kind @param {number | null} ageMs
   * @param {boolean} sure false: it is at least so old
   * @param {string} none why there is none
   */
  picture(kind, ageMs, sure, none) {
    mark(document.body, 'data-picture', kind);
    show(this.age, kind === 'old');
    if (kind === 'old' && ageMs !== null) say(this.age, WORDS.old(ageMs / 1000, sure));
    show(this.noPicture, kind === 'none');
    say(this.noPicture, none);
  }

  /** Drawn at once, before the car answers. @param {import('../lib/types.js').Wish} wish */
  wish({throttle, steer}) {
    say(byId('drive-says'), WORDS.drivePercent(throttle));
    say(byId('steer-says'), WORDS.steerPercent(steer));
    mark(drawing('gauge-drive'), 'd', throttle ? `M10 22V${(22 - 19 * throttle).toFixed(1)}` : '');
    mark(drawing('gauge-steer'), 'd', steer ? `M44 10H${(44 - 40 * steer).toFixed(1)}` : '');
  }
}
