/** Plots of what was measured over the time of a drive, with a cursor, as SVG. */

import {make, setAttr, setText, svg} from '../lib/dom.js';
import {axis, extent, joinLines, linePath, valueAt} from './lines.js';
import {STRINGS} from './strings.js';

/** @import {Series, Table} from './types.js' */

const BOX = {width: 1000, height: 100};
/** The order on the page; groups that are not named here come last. */
const ORDER = ['range', 'setpoint', 'duty', 'battery', 'current', 'latency'];
/** Axes of these begin at zero; a battery's does not. */
const FROM_ZERO = ['range', 'latency', 'current'];
/** Axes of these go from -1 to 1. */
const BOTH_WAYS = ['setpoint', 'duty'];
const COLOURS = 6;
/** With buckets longer than this a value at the cursor is only about right. */
const COARSE_S = 2;

/**
 * One plot: its lines, its axis, and where to write the values at the cursor.
 * @typedef {{figure: HTMLElement, svg: SVGElement, group: string, unit: string,
 *   lines: Map<string, {line: Series, path: SVGElement, value: HTMLElement}>,
 *   top: HTMLElement, bottom: HTMLElement}} Plot
 */

export class Plots {
  /**
   * @param {HTMLElement} host
   * @param {(timeS: number) => void} seek called when somebody pushes on a plot
   */
  constructor(host, seek) {
    this.host = host;
    this.seek = seek;
    this.seconds = 1;
    this.bucketS = 0;
    /** @type {Map<string, Series>} */
    this.lines = new Map();
    /** @type {Map<string, Plot>} */
    this.plots = new Map();
    /** Groups whose lines grew since they were drawn. @type {Set<string>} */
    this.grown = new Set();
    host.addEventListener('pointerdown', (event) => this.pointed(event));
    host.addEventListener('pointermove', (event) => {
      if (event.buttons & 1) this.pointed(event);
    });
  }

  /** Begins another drive. @param {number} seconds @param {number} bucketS see bucketOf() */
  clear(seconds, bucketS) {
    this.seconds = Math.max(seconds, 0.001);
    this.bucketS = bucketS;
    this.lines.clear();
    this.plots.clear();
    this.grown.clear();
    this.host.replaceChildren();
  }

  /**
   * Adds a part of the drive. However many come at once, each line is drawn once a frame.
   * @param {Table} table @param {number} startS
   */
  add(table, startS) {
    joinLines(this.lines, table.series, startS, this.bucketS);
    for (const [key, line] of this.lines) {
      const plot = this.plots.get(line.group) ?? this.begin(line.group, line.unit);
      if (!plot.lines.has(key)) this.addLine(plot, key, line);
    }
    if (this.grown.size === 0) requestAnimationFrame(() => this.drawGrown());
    for (const {group} of table.series) this.grown.add(group);
  }

  drawGrown() {
    for (const group of this.grown) {
      const plot = this.plots.get(group);
      if (plot) this.draw(plot);
    }
    this.grown.clear();
  }

  /** @param {string} group @param {string} unit @returns {Plot} */
  begin(group, unit) {
    const figure = make('figure', '');
    figure.className = 'plot';
    figure.dataset.group = group;
    const caption = make('figcaption', '');
    caption.append(make('strong', STRINGS.group(group)));
    const field = make('div', '');
    field.className = 'field';
    const drawing = svg('svg', {
      viewBox: `0 0 ${BOX.width} ${BOX.height}`, preserveAspectRatio: 'none', role: 'img',
    });
    const [top, bottom] = [make('span', ''), make('span', '')];
    top.className = 'top';
    bottom.className = 'bottom';
    for (const label of [top, bottom]) setAttr(label, 'aria-hidden', 'true');
    const cursor = make('i', '');
    cursor.className = 'cursor';
    field.append(drawing, cursor, top, bottom);
    figure.append(caption, field);
    const plot = {figure, svg: drawing, group, unit, lines: new Map(), top, bottom};
    this.plots.set(group, plot);
    const rank = (/** @type {string} */ name) => (ORDER.indexOf(name) + 1) || ORDER.length + 1;
    const after = [...this.host.children].find((other) =>
      rank(/** @type {HTMLElement} */ (other).dataset.group ?? '') > rank(group));
    this.host.insertBefore(figure, after ?? null);
    return plot;
  }

  /** @param {Plot} plot @param {string} key @param {Series} line */
  addLine(plot, key, line) {
    const colour = `line-${plot.lines.size % COLOURS}`;
    const path = svg('path', {class: colour});
    plot.svg.append(path);
    const legend = make('span', '');
    legend.className = `legend ${colour}`;
    const value = make('b', '');
    legend.append(make('span', line.name), value);
    plot.figure.querySelector('figcaption')?.append(legend);
    plot.lines.set(key, {line, path, value});
  }

  /** @param {Plot} plot */
  draw(plot) {
    const {group, unit, lines} = plot;
    const all = [...lines.values()];
    const found = all.map(({line}) => extent(line.v));
    const held = extent(found.flatMap((one) => (one ? [one.low, one.high] : [])));
    const {low, high} = BOTH_WAYS.includes(group) ? {low: -1, high: 1}
      : axis(held ?? {low: 0, high: 1}, FROM_ZERO.includes(group));
    const box = {...BOX, seconds: this.seconds, low, high};
    for (const {line, path} of all) setAttr(path, 'd', linePath(line, box));
    setText(plot.top, STRINGS.value(high, unit));
    setText(plot.bottom, STRINGS.value(low, unit));
    setAttr(plot.svg, 'aria-label', `${STRINGS.group(group)}: ` + all.map(({line}, index) => {
      const one = found[index];
      return one ? STRINGS.span(line.name, one.low, one.high, unit) : STRINGS.nothing(line.name);
    }).join(', '));
  }

  /** Puts the cursor at a moment, and writes the values there. @param {number} timeS */
  cursor(timeS) {
    this.host.style.setProperty('--at', String(timeS / this.seconds));
    for (const {unit, lines} of this.plots.values()) {
      for (const {line, value} of lines.values()) {
        const words = STRINGS.value(valueAt(line, timeS), unit);
        setText(value, this.bucketS > COARSE_S ? STRINGS.about(words) : words);
      }
    }
  }

  /** @param {PointerEvent} event */
  pointed(event) {
    const field = event.target instanceof Element ? event.target.closest('.field') : null;
    if (!field) return;
    const {left, width} = field.getBoundingClientRect();
    this.seek(Math.min(1, Math.max(0, (event.clientX - left) / width)) * this.seconds);
  }
}
