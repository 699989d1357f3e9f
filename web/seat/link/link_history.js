/** Curves of picture and link in the last minute, and a warning when the Wi-Fi loses packets. */

import {byId, drawing, setAttr, setText, show} from '../../lib/dom.js';
import {DRAWER_STRINGS} from '../drawer/drawer-strings.js';
import {sparkline} from './sparkline.js';
import {toast} from '../toast.js';

const SECONDS = 60;
const BOX = {width: 300, height: 68};
const HIGH_LEAST_MS = 50;
/** The drawing's height is a fifth of all packets. */
const LOST_HIGH = 0.2;
/** From this share on a picture is late now and then; below the other it is well again. */
const WEAK_FROM = 0.03;
const WEAK_UNTIL = 0.01;

export class LinkHistory {
  constructor() {
    /** One a second. @type {(number | null)[]} */
    this.pictures = [];
    /** @type {(number | null)[]} */
    this.links = [];
    /** Shares of packets that the car sent again. @type {(number | null)[]} */
    this.lost = [];
    this.weak = false;
  }

  /**
   * Adds the figures of a second; warns if many packets are lost.
   * @param {number | null} pictureMs @param {number | null} linkMs
   * @param {number | null} lost
   */
  second(pictureMs, linkMs, lost) {
    for (const [row, value] of /** @type {const} */ ([
      [this.pictures, pictureMs], [this.links, linkMs], [this.lost, lost],
    ])) {
      row.push(value);
      if (row.length > SECONDS) row.shift();
    }
    const before = this.weak;
    this.weak = (lost ?? 0) >= (before ? WEAK_UNTIL : WEAK_FROM);
    show(byId('weak-says'), this.weak);
    if (!this.weak) return;
    const text = DRAWER_STRINGS.weak(lost ?? 0);
    setText(byId('weak-says'), text);
    if (!before) toast(text, 'warn');
  }

  /** Draws it. */
  draw() {
    const high = Math.max(HIGH_LEAST_MS, ...this.pictures.map(Number), ...this.links.map(Number));
    setAttr(drawing('minute-picture'), 'd', sparkline(this.pictures, SECONDS, {...BOX, high}));
    setAttr(drawing('minute-link'), 'd', sparkline(this.links, SECONDS, {...BOX, high}));
    setAttr(drawing('minute-lost'), 'd', sparkline(this.lost, SECONDS, {...BOX, high: LOST_HIGH}));
    setText(byId('minute-top'), DRAWER_STRINGS.upTo(high));
  }
}

/** The curve of the last seconds on the link's chip: a function that takes the next value. */
export function spark() {
  /** @type {(number | null)[]} */
  const values = [];
  return (/** @type {number | null} */ ms) => {
    values.push(ms);
    if (values.length > SECONDS) values.shift();
    setAttr(drawing('spark'), 'd', sparkline(values, SECONDS, {width: 72, height: 16, high: 120}));
  };
}
