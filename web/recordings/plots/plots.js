/**
 * Plots of a drive's measurements over time, as SVG: all show the same stretch,
 * with a time axis, the moment of the picture and that under the pointer.
 *
 * No library: uPlot (50 kB) has neither pinch nor wheel, and the page takes no dependency.
 */

import {listed, titled} from '../../lang/forms.js';
import {make, setAttr, setText, svg} from '../../lib/dom.js';
import {Gestures} from './gestures.js';
import {axis, extent, joinLines, lastUpTo, linePath, valueAt} from './lines.js';
import {STRINGS} from '../strings.js';
import {TimeView} from './timeview.js';

/** @import {Series, Table} from '../types.js' */

export const BOX = {width: 1000, height: 100};
/** The order on the page; groups that are not named here come last. */
const ORDER = ['range', 'setpoint', 'duty', 'angle', 'battery', 'current', 'latency', 'lost'];
/** Axes of these begin at zero; a battery's does not. */
const FROM_ZERO = ['range', 'latency', 'lost', 'current'];
/** Axes of these go from -1 to 1. */
const BOTH_WAYS = ['setpoint', 'duty'];
export const COLOURS = 6;
/** With buckets longer than this a value at the cursor is only about right. */
const COARSE_S = 2;
const TICK_PX = 78;
/** Finer values are requested after so long without a move. */
const SETTLED_MS = 400;
const KEY_ZOOM = 0.5;

/**
 * One plot: its lines, its axis, and where to write the values at the cursor.
 * @typedef {{figure: HTMLElement, svg: SVGElement, group: string, unit: string,
 *   lines: Map<string, {line: Series, path: SVGElement, value: HTMLElement}>,
 *   top: HTMLElement, bottom: HTMLElement, grid: SVGElement, times: HTMLElement}} Plot
 */

export class Plots {
  /**
   * @param {HTMLElement} host
   * @param {{seek: (timeS: number) => void, look: (fromS: number, toS: number) => void,
   *   changed: () => void}} acts
   *   `seek`: a plot was pushed; `look`: looks at this stretch closely;
   *   `changed`: shows another stretch
   */
  constructor(host, acts) {
    this.host = host;
    this.acts = acts;
    this.view = new TimeView(1);
    /** The moment of the picture, and that under the pointer. */
    this.timeS = 0;
    /** @type {number | null} */
    this.hoverS = null;
    this.bucketS = 0;
    /** The parts in the order of their time. @type {Map<number, {table: Table, bucketS: number}>} */
    this.parts = new Map();
    /** @type {Map<string, Series>} */
    this.lines = new Map();
    /** @type {Map<string, Plot>} */
    this.plots = new Map();
    /** Groups to redraw. @type {Set<string>} */
    this.stale = new Set();
    this.settled = 0;
    const at = (/** @type {number} */ share) => this.view.at(share);
    this.gestures = new Gestures(host, {
      seek: (share) => acts.seek(at(share)),
      hover: (share) => this.hover(share === null ? null : at(share)),
      mark: (a, b) => this.mark(a, b),
      show: (a, b) => this.change((view) => view.set(view.at(a), view.at(b))),
      zoom: (factor, share) => this.change((view) => view.zoom(factor, view.at(share))),
      pan: (share) => this.change((view) => view.pan(share * view.spanS)),
      all: () => this.all(),
    });
    new ResizeObserver(() => this.redraw()).observe(host);
  }

  /** Begins another drive. @param {number} seconds @param {number} bucketS see bucketOf() */
  clear(seconds, bucketS) {
    this.view = new TimeView(Math.max(seconds, 0.001));
    this.bucketS = bucketS;
    this.hoverS = null;
    for (const map of [this.parts, this.lines, this.plots, this.stale]) map.clear();
    this.host.replaceChildren();
    this.acts.changed();
  }

  /**
   * Adds a part of the drive. However many come at once, each line is drawn once a frame.
   * @param {Table} table @param {number} startS
   */
  add(table, startS) {
    this.parts.set(startS, {table, bucketS: this.bucketS});
    joinLines(this.lines, table.series, startS, this.bucketS);
    this.begun(table);
  }

  /** Takes a part with more points. @param {Table} table @param {number} startS @param {number} bucketS */
  replace(table, startS, bucketS) {
    this.parts.set(startS, {table, bucketS});
    this.lines.clear();
    for (const [atS, part] of this.parts) {
      joinLines(this.lines, part.table.series, atS, part.bucketS);
    }
    for (const plot of this.plots.values()) {
      for (const [key, drawn] of plot.lines) drawn.line = this.lines.get(key) ?? drawn.line;
    }
    this.begun(table);
  }

  /** @param {Table} table */
  begun(table) {
    for (const [key, line] of this.lines) {
      const plot = this.plots.get(line.group) ?? this.begin(line.group, line.unit);
      if (!plot.lines.has(key)) this.addLine(plot, key, line);
    }
    this.redraw(table.series.map(({group}) => group));
  }

  /** Draws plots with the next frame. @param {Iterable<string>} groups */
  redraw(groups = this.plots.keys()) {
    if (this.stale.size === 0) requestAnimationFrame(() => this.drawStale());
    for (const group of groups) this.stale.add(group);
  }

  /**
   * Shows another stretch; false if it is the same.
   * @param {(view: TimeView) => void} act
   */
  change(act) {
    const {view} = this;
    const [fromS, toS] = [view.fromS, view.toS];
    act(view);
    if (view.fromS === fromS && view.toS === toS) return false;
    this.redraw();
    this.place();
    this.acts.changed();
    clearTimeout(this.settled);
    this.settled = Number(setTimeout(() => this.acts.look(view.fromS, view.toS), SETTLED_MS));
    return true;
  }

  /** Shows less or more around the moment of the picture. @param {'in' | 'out'} way */
  zoom(way) {
    const {timeS} = this;
    this.change((view) => {
      const inside = timeS >= view.fromS && timeS <= view.toS;
      view.zoom(way === 'in' ? KEY_ZOOM : 1 / KEY_ZOOM, inside ? timeS : view.at(0.5));
    });
  }

  all() {
    this.change((view) => view.all());
  }

  drawStale() {
    for (const group of this.stale) {
      const plot = this.plots.get(group);
      if (plot) this.draw(plot);
    }
    this.stale.clear();
  }

  /** @param {string} group @param {string} unit @returns {Plot} */
  begin(group, unit) {
    const {figure, ...parts} = emptyFigure(group, STRINGS.group(group));
    parts.field.append(...['hover', 'cursor', 'marked'].map((name) => {
      const element = make('i', '');
      element.className = name;
      return element;
    }));
    const plot = {figure, ...parts, group, unit, lines: new Map()};
    this.plots.set(group, plot);
    const rank = (/** @type {string} */ name) => (ORDER.indexOf(name) + 1) || ORDER.length + 1;
    const after = [...this.host.children].find((sibling) =>
      rank(/** @type {HTMLElement} */ (sibling).dataset.group ?? '') > rank(group));
    this.host.insertBefore(figure, after ?? null);
    return plot;
  }

  /** @param {Plot} plot @param {string} key @param {Series} line */
  addLine(plot, key, line) {
    const colour = `line-${plot.lines.size % COLOURS}`;
    const path = svg('path', {class: colour});
    plot.svg.append(path);
    plot.lines.set(key, {line, path, value: addLegend(plot.figure, line.name, colour)});
  }

  /** @param {Plot} plot */
  draw(plot) {
    const {group, unit, lines} = plot;
    const all = [...lines.values()];
    const extents = all.map(({line}) => extent(line.v));
    const held = extent(extents.flatMap((range) => (range ? [range.low, range.high] : [])));
    const {low, high} = BOTH_WAYS.includes(group) ? {low: -1, high: 1}
      : axis(held ?? {low: 0, high: 1}, FROM_ZERO.includes(group));
    const {fromS, toS} = this.view;
    const box = {...BOX, fromS, toS, low, high};
    this.drawTimes(plot);
    for (const {line, path} of all) setAttr(path, 'd', linePath(line, box));
    setText(plot.top, STRINGS.value(high, unit));
    setText(plot.bottom, STRINGS.value(low, unit));
    setAttr(plot.svg, 'aria-label', titled(STRINGS.group(group), listed(all.map(({line}, index) => {
      const range = extents[index];
      return range ? STRINGS.span(line.name, range.low, range.high, unit) : STRINGS.nothing(line.name);
    }))));
  }

  /** Draws the time axis. @param {Plot} plot */
  drawTimes({svg: drawing, grid, times}) {
    const width = drawing.clientWidth || drawing.getBoundingClientRect().width;
    const {stepS, ticks} = this.view.ticks(Math.max(2, Math.floor(width / TICK_PX)));
    setAttr(grid, 'd', ticks.map((timeS) =>
      `M${Math.round(this.view.share(timeS) * BOX.width * 10) / 10} 0v${BOX.height}`).join(''));
    times.replaceChildren(...ticks.map((timeS) => {
      const label = make('span', STRINGS.moment(timeS, stepS));
      label.style.setProperty('--x', String(this.view.share(timeS)));
      return label;
    }));
  }

  /** Puts the cursor at a moment, and writes the values there. @param {number} timeS */
  cursor(timeS) {
    const moved = timeS !== this.timeS;
    this.timeS = timeS;
    if (moved && !this.view.whole) this.change((view) => view.follow(timeS));
    this.place();
    this.write();
  }

  /** Shows the values of another moment than the picture's. @param {number | null} timeS */
  hover(timeS) {
    this.hoverS = timeS;
    this.place();
    this.write();
  }

  /** Puts the cursors where they are in the stretch that is shown. */
  place() {
    const {host, view, timeS, hoverS} = this;
    host.style.setProperty('--at', String(view.share(timeS)));
    host.style.setProperty('--hover', String(view.share(hoverS ?? timeS)));
    setAttr(host, 'data-hover', hoverS === null ? '' : STRINGS.moment(hoverS, 0.01));
  }

  /** Writes the values of all lines. */
  write() {
    const timeS = this.hoverS ?? this.timeS;
    const starts = [...this.parts.keys()];
    const part = this.parts.get(starts[Math.max(0, lastUpTo(starts, timeS))]);
    const coarse = (part?.bucketS ?? this.bucketS) > COARSE_S;
    for (const {unit, lines} of this.plots.values()) {
      for (const {line, value} of lines.values()) {
        const text = STRINGS.value(valueAt(line, timeS), unit);
        setText(value, coarse ? STRINGS.about(text) : text);
      }
    }
  }

  /** Shows the marked span; hides it if a equals b. @param {number} a @param {number} b */
  mark(a, b) {
    this.host.style.setProperty('--mark-from', String(Math.min(a, b)));
    this.host.style.setProperty('--mark-to', String(Math.max(a, b)));
  }
}

/** A plot without lines: its caption, the box of its lines, and its axes. @param {string} group @param {string} title */
export function emptyFigure(group, title) {
  const figure = make('figure', '');
  figure.className = 'plot';
  figure.dataset.group = group;
  const caption = make('figcaption', '');
  caption.append(make('strong', title));
  const field = make('div', '');
  field.className = 'field';
  const drawing = svg('svg', {
    viewBox: `0 0 ${BOX.width} ${BOX.height}`, preserveAspectRatio: 'none', role: 'img',
  });
  const [top, bottom, times] = [make('span', ''), make('span', ''), make('div', '')];
  top.className = 'top';
  bottom.className = 'bottom';
  times.className = 'times';
  for (const labels of [top, bottom, times]) setAttr(labels, 'aria-hidden', 'true');
  const grid = svg('path', {class: 'grid'});
  drawing.append(grid);
  field.append(drawing, top, bottom);
  figure.append(caption, field, times);
  return {figure, field, svg: drawing, top, bottom, grid, times};
}

/** Adds a line's name to a plot; returns the element of its value. @param {HTMLElement} figure @param {string} name @param {string} colour */
export function addLegend(figure, name, colour) {
  const legend = make('span', '');
  legend.className = `legend ${colour}`;
  const value = make('b', '');
  legend.append(make('span', name), value);
  figure.querySelector('figcaption')?.append(legend);
  return value;
}
