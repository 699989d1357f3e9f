/** Plots of a base station over all drives, a point a week: stops, battery, age of the picture. */

import {dates, listed, titled} from '../../lang/forms.js';
import {t} from '../../lang/words.js';
import {byId, make, setAttr, setText, svg} from '../../lib/dom.js';
import {axis, extent, linePath} from './lines.js';
import {addLegend, BOX, COLOURS, emptyFigure} from './plots.js';
import {STRINGS} from '../strings.js';

/** @import {WeekFigures, WeekRow} from '../types.js' */

const WEEK_S = 604_800;
/** Plots and their units. */
const UNITS = {stops: '/h', battery: 'V', latency: 'ms'};
const week = dates({day: 'numeric', month: 'short', year: '2-digit', timeZone: 'UTC'});

/**
 * The lines of a plot by their names, in order. Pure.
 * @param {readonly WeekRow[]} rows @param {string} plot
 */
export function linesOf(rows, plot) {
  /** @type {Map<string, {t: number[], v: number[]}>} */
  const lines = new Map();
  for (const [of, name, weekMs, value] of rows) {
    if (of !== plot) continue;
    const {t: timesS, v: values} = lines.get(name) ?? {t: [], v: []};
    timesS.push(weekMs / 1000);
    values.push(value);
    lines.set(name, {t: timesS, v: values});
  }
  return lines;
}

export class Weeks {
  /** @param {{weeks: () => Promise<WeekFigures>}} api */
  constructor(api) {
    const details = byId('weeks', HTMLDetailsElement);
    details.addEventListener('toggle', () => {
      if (details.open) void this.load(api);
    });
  }

  /** @param {{weeks: () => Promise<WeekFigures>}} api */
  async load(api) {
    setText(byId('weeks-says'), t.recordings.searching);
    try {
      const {rows} = await api.weeks();
      setText(byId('weeks-says'), rows.length ? '' : t.recordings.weeksNone);
      byId('weeks-plots').replaceChildren(...Object.entries(UNITS)
        .map(([plot, unit]) => figureOf(rows, plot, unit)).filter((figure) => figure !== null));
    } catch (fault) {
      setText(byId('weeks-says'), STRINGS.refused(fault instanceof Error ? fault.message : String(fault)));
    }
  }
}

/** @param {readonly WeekRow[]} rows @param {string} plot @param {string} unit */
function figureOf(rows, plot, unit) {
  const lines = linesOf(rows, plot);
  const all = [...lines.values()];
  const held = extent(all.flatMap(({v}) => v));
  if (!held) return null;
  const weeks = all.flatMap(({t: timesS}) => timesS).sort((a, b) => a - b);
  const [firstS, lastS] = [weeks[0], weeks[weeks.length - 1]];
  const middleS = firstS + Math.round((lastS - firstS) / WEEK_S / 2) * WEEK_S;
  const [fromS, toS] = [firstS - WEEK_S / 2, lastS + WEEK_S / 2];
  const box = {...BOX, fromS, toS, ...axis(held, plot !== 'battery')};
  const title = STRINGS.week(plot);
  const {figure, svg: drawing, top, bottom, times} = emptyFigure(plot, title);
  for (const [index, line] of all.entries()) {
    const {t: timesS, v: values} = line;
    const colour = `line-${index % COLOURS}`;
    const points = timesS.map((atS, at) => linePath({t: [atS], v: [values[at]]}, box)).join('');
    drawing.append(svg('path', {class: colour, d: linePath(line, box)}),
      svg('path', {class: `${colour} points`, d: points}));
    const value = addLegend(figure, [...lines.keys()][index], colour);
    setText(value, STRINGS.value(values[values.length - 1], unit));
  }
  setText(top, STRINGS.value(box.high, unit));
  setText(bottom, STRINGS.value(box.low, unit));
  times.append(...[...new Set([firstS, middleS, lastS])].map((atS) => {
    const label = make('span', week(atS * 1000));
    label.style.setProperty('--x', String((atS - fromS) / (toS - fromS)));
    return label;
  }));
  setAttr(drawing, 'aria-label', titled(title, listed([...lines].map(([name, {v}]) => {
    const range = extent(v);
    return range ? STRINGS.span(name, range.low, range.high, unit) : STRINGS.nothing(name);
  }))));
  return figure;
}
