/** Draws the children's page: buttons with the car's looks, stars, tools. */

import {stars} from './model.js';
import {t} from '../lang/words.js';
import {STRINGS} from './strings.js';

/** @import {ButtonLook, Glow} from '../lib/types.js' */

const SVG = 'http://www.w3.org/2000/svg';
/** SVG paths in a box of 100 x 100. @type {Record<string, string>} */
export const SHAPES = {
  circle: 'M50 16a34 34 0 1 1-.01 0Z',
  triangle: 'M50 16 88 80H12Z',
  square: 'M20 20H80V80H20Z',
  star: 'M50 10 61.8 37.8 91.9 40.4 69.1 60.2 75.9 89.6 50 74 24.1 89.6 30.9 60.2 8.1 40.4 38.2 37.8Z',
  heart: 'M50 86C16 62 10 46 10 34a20 20 0 0 1 40-4 20 20 0 0 1 40 4c0 12-6 28-40 52Z',
  diamond: 'M50 10 86 50 50 90 14 50Z',
};

/** The looks of a car without buttons, and until the car has sent its own. */
export const LOOKS = [
  {name: 'red', colour: 'red', shape: 'circle'},
  {name: 'yellow', colour: 'yellow', shape: 'triangle'},
  {name: 'green', colour: 'green', shape: 'square'},
  {name: 'blue', colour: 'blue', shape: 'star'},
];

export class Drawing {
  /** @param {(id: string) => HTMLElement} byId */
  constructor(byId) {
    this.byId = byId;
    this.looks = '';
    this.drawn = '';
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    byId('rainbow').setAttribute('aria-label', t.buttons.rainbow);
    byId('game').setAttribute('aria-label', t.buttons.game);
    byId('sound').setAttribute('aria-label', t.buttons.sound);
  }

  /** Builds the buttons, if their looks changed. @param {ButtonLook[]} looks */
  build(looks) {
    const text = JSON.stringify(looks);
    if (text === this.looks) return;
    this.looks = text;
    this.buttons = looks.map(big);
    const stage = this.byId('stage');
    stage.dataset.count = String(looks.length);
    stage.replaceChildren(...this.buttons.map((button, number) => {
      const cell = document.createElement('div');
      cell.className = 'cell';
      cell.dataset.button = String(number);
      cell.append(button);
      return cell;
    }));
  }

  /** Lights the buttons of this mask. @param {number} mask */
  light(mask) {
    this.buttons.forEach((button, number) =>
      button.toggleAttribute('data-lit', ((mask >> number) & 1) === 1));
  }

  /** @param {string} car */
  name(car) {
    this.byId('heading').textContent = document.title = STRINGS.heading(car);
  }

  /**
   * Draws mode, tools and stars.
   * @param {Glow | null} glow null without a link
   * @param {boolean} sound
   */
  mode(glow, sound) {
    const {mode, length, done, best} = glow ?? {mode: 'free', length: 0, done: 0, best: 0};
    const text = JSON.stringify([glow !== null, mode, length, done, best, sound]);
    if (text === this.drawn) return;
    this.drawn = text;
    document.body.dataset.mode = mode;
    document.body.dataset.link = glow ? 'up' : 'none';
    this.byId('say').textContent = glow ? STRINGS.mode(mode) : t.buttons.lost;
    this.press('rainbow', mode === 'rainbow');
    this.press('game', !['free', 'rainbow'].includes(mode));
    this.press('sound', sound);
    const row = this.byId('stars');
    row.hidden = length === 0;
    row.setAttribute('aria-label', STRINGS.stars(done, length, best));
    row.replaceChildren(...stars({mode, length, done, best}).map(star));
  }

  /** @param {string} id @param {boolean} on */
  press(id, on) {
    this.byId(id).setAttribute('aria-pressed', String(on));
  }
}

/** @param {ButtonLook} look */
function big(look) {
  const button = document.createElement('button');
  button.className = 'big';
  button.dataset.colour = look.colour;
  button.setAttribute('aria-label', STRINGS.button(look));
  button.append(picture(SHAPES[look.shape] ?? SHAPES.circle));
  return button;
}

/** @param {'gold' | 'now' | 'goal'} kind */
function star(kind) {
  const drawn = picture(SHAPES.star);
  drawn.classList.add(kind);
  return drawn;
}

/** @param {string} data */
function picture(data) {
  const svg = document.createElementNS(SVG, 'svg');
  const path = document.createElementNS(SVG, 'path');
  svg.setAttribute('viewBox', '0 0 100 100');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', data);
  svg.append(path);
  return svg;
}
