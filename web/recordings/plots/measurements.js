/**
 * Measurements of a drive: fetched file by file for the plots, and finer when
 * zoomed in.
 */

import {make} from '../../lib/dom.js';
import {Refused} from '../../lib/http.js';
import {bucketOf, clipped, pointsOf} from '../drives.js';
import {angleAt, lastUpTo} from './lines.js';
import {STRINGS} from '../strings.js';

/** @import {Drive, Part, Table} from '../types.js' */
/** @import {Plots} from './plots.js' */

const AGAIN_MS = 2000;
/** Points across zoomed plots, and the most per file. */
const POINTS = 1200;
const POINTS_MOST = 10_000;
/** Finer points are fetched if there would be so many times more. */
const FINER = 1.5;

export class Measurements {
  /**
   * @param {{plots: Plots, gaps: HTMLElement, failed: (fault: string) => void,
   *   fetch: (name: string, points: number) => Promise<Table>}} parts
   */
  constructor({plots, gaps, failed, fetch}) {
    this.plots = plots;
    this.gaps = gaps;
    this.failed = failed;
    this.fetch = fetch;
    /** @type {Drive | null} */
    this.drive = null;
    /** Reasons for the car's actions, with start times. */
    this.reasons = {t: /** @type {number[]} */ ([]), why: /** @type {string[]} */ ([])};
    /** Servos of the files so far, by name. @type {NonNullable<Table['servos']>} */
    this.servos = {};
    /** How many points of each line are here, by file. @type {Map<string, number>} */
    this.points = new Map();
    this.looks = 0;
  }

  /** Fetches another drive; null clears. @param {Drive | null} drive */
  async open(drive) {
    this.drive = drive;
    this.reasons = {t: [], why: []};
    this.servos = {};
    this.points.clear();
    this.gaps.replaceChildren();
    if (!drive) return;
    this.plots.clear(drive.seconds, bucketOf(drive));
    for (const part of drive.parts) {
      const table = await this.table(drive, part, pointsOf(drive));
      if (!table) return;
      this.points.set(part.name, pointsOf(drive));
      this.plots.add(table, part.startS);
      Object.assign(this.servos, table.servos);
      this.reasons.t.push(...table.reasons.map(({t}) => part.startS + t));
      this.reasons.why.push(...table.reasons.map(({reason}) => reason));
      this.gaps.append(...table.gaps.map(({t, words}) =>
        make('li', STRINGS.gap(part.startS + t, words))));
    }
  }

  /** Fetches this stretch with more points. @param {number} fromS @param {number} toS */
  async look(fromS, toS) {
    const {drive} = this;
    this.looks += 1;
    const {looks} = this;
    for (const part of drive?.parts ?? []) {
      const points = Math.min(POINTS_MOST, Math.ceil(POINTS * part.seconds / (toS - fromS)));
      const had = this.points.get(part.name);
      if (!drive || had === undefined || part.endS < fromS || part.startS > toS) continue;
      if (points < had * FINER) continue;
      const table = await this.table(drive, part, points);
      if (!table || looks !== this.looks) return;
      this.points.set(part.name, points);
      this.plots.replace(table, part.startS, part.seconds / Math.floor(points / 2));
    }
  }

  /**
   * Measurements of a file within the drive. Null once another drive is on the page;
   * only a gap if the car refuses.
   * @param {Drive} drive @param {Part} part @param {number} points
   */
  async table(drive, part, points) {
    while (this.drive === drive) {
      try {
        const table = clipped(await this.fetch(part.name, points), part);
        return this.drive === drive ? table : null;
      } catch (fault) {
        if (fault instanceof Refused && fault.final) return refused(fault.message, part);
        this.failed(fault instanceof Error ? fault.message : String(fault));
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    return null;
  }

  /**
   * A servo and its angle at a moment; undefined if the car has no such servo.
   * @param {string} name @param {number} timeS
   */
  servo(name, timeS) {
    const servo = this.servos[name];
    const line = this.plots.lines.get(`angle/${name}`);
    return servo && {...servo, deg: (line && angleAt(line, timeS)) ?? servo.rest_deg};
  }

  /** The reason for the car's action at a moment. @param {number} timeS */
  reason(timeS) {
    const index = lastUpTo(this.reasons.t, timeS);
    return index < 0 ? '' : STRINGS.reason(this.reasons.why[index]);
  }
}

/** The table of a file that has only a gap. @param {string} english @param {Part} part @returns {Table} */
const refused = (english, {from_s: t}) => ({
  start_ms: 0, seconds: 0, series: [], reasons: [], marks: [], gaps: [{t, words: {key: '', english, values: {}}}],
});
