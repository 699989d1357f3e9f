/** Picture of the camera's direction: a view within the limits of pan and tilt, and their rest. */

import {clamp} from './curves.js';
import {setAttr, svg} from './dom.js';

/** @typedef {{deg: number, least_deg: number, most_deg: number, rest_deg: number}} Servo */

const [WIDTH, HEIGHT] = [96, 66];
const VIEW = {width: 30, height: 20};

export class CameraDirection {
  constructor() {
    this.view = svg('rect', {class: 'view', ...VIEW, rx: 3});
    this.rest = svg('path', {class: 'ahead'});
    this.element = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true'});
    this.element.append(this.rest, this.view);
  }

  /** @param {Servo | undefined} pan @param {Servo | undefined} tilt */
  draw(pan, tilt) {
    const [x, restX] = places(pan, WIDTH - VIEW.width);
    const [y, restY] = places(tilt, HEIGHT - VIEW.height);
    setAttr(this.view, 'transform', `translate(${x} ${y})`);
    setAttr(this.rest, 'd', `M${restX + 15} ${restY + 4}v12M${restX + 9} ${restY + 10}h12`);
  }
}

/**
 * Where a servo looks and where it rests, from 0 (left, up) to `size`.
 * @param {Servo | undefined} servo @param {number} size @returns {[number, number]}
 */
export function places(servo, size) {
  if (!servo) return [size / 2, size / 2];
  const {deg, least_deg: least, most_deg: most, rest_deg: rest} = servo;
  const place = (/** @type {number} */ angle) => Math.round(size * Math.max(0, clamp((most - angle) / (most - least))));
  return [place(deg), place(rest)];
}
