/** "Find moments" of a base station: a search of all recordings by conditions, and its results. */

import {number, percent, t, unit} from '../../lang/words.js';
import {button, byId, make, setAttr, setText, show} from '../../lib/dom.js';
import {Refused} from '../../lib/http.js';
import {addressOf, momentIn} from '../drives.js';
import {STRINGS} from '../strings.js';
import {driverName, offerDrivers} from './filter.js';

/** @import {Moment, Moments} from '../types.js' */
/** @import {Thumbnails} from './thumbnail.js' */

/** A moment opens so long before it. */
const LEAD_S = 1;
/** Status of a search that was ended. */
const TOO_LONG = 408;
const SLOW_MS = 5000;
/** Worst values of a moment, and their texts. @type {Record<string, (value: number) => string>} */
const WORST = {
  front_m: (value) => unit(value, 'meter', 2),
  throttle_share: percent,
  battery_v: (value) => `${number(value, 1)}\u00a0V`,
  picture_ms: (value) => unit(value, 'millisecond'),
};

/**
 * Query of the form: its fields that are not empty, per cent as a share. Pure.
 * @param {Iterable<[string, unknown]>} fields
 */
export function conditionsOf(fields) {
  const query = new URLSearchParams();
  for (const [name, value] of fields) {
    const text = String(value);
    if (text) query.set(name, name === 'throttle_above_share' ? String(Number(text) / 100) : text);
  }
  return query;
}

/** @param {Moment} moment */
const linkOf = ({drive, at_s: atS}) => addressOf(drive, atS - LEAD_S);

/** Moments as CSV, RFC 4180, with a link each. Pure. @param {Moment[]} moments @param {string} page its URL */
export function csvOf(moments, page) {
  const head = ['time', 'seconds', 'session', 'driver', 'cause', ...Object.keys(WORST), 'link'];
  const rows = moments.map((moment) => [
    new Date(moment.start_ms).toISOString(), moment.seconds, moment.session, moment.driver, moment.cause,
    ...Object.keys(WORST).map((name) => moment.worst[name]),
    moment.drive && new URL(linkOf(moment), page).href,
  ]);
  const cell = (/** @type {unknown} */ value) => {
    const text = String(value ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

export class MomentSearch {
  /**
   * @param {{api: {moments: (conditions: URLSearchParams) => Promise<Moments>},
   *   thumbnails: Thumbnails, seek: (atS: number) => void}} parts
   */
  constructor({api, thumbnails, seek}) {
    this.api = api;
    this.thumbnails = thumbnails;
    this.seek = seek;
    /** @type {Moment[]} */
    this.moments = [];
    const {causes, momentsAny, momentsStops} = t.recordings;
    byId('moments-stop', HTMLSelectElement).append(new Option(momentsAny, ''), new Option(momentsStops, 'any'),
      ...Object.entries(causes).map(([cause, text]) => new Option(text, cause)));
    const form = byId('moments-form', HTMLFormElement);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.search(conditionsOf(new FormData(form)));
    });
    button('moments-csv').addEventListener('click', () => this.save());
  }

  /** Offers these drivers. @param {readonly string[]} names */
  update(names) {
    offerDrivers(byId('moments-driver', HTMLSelectElement), names);
  }

  /** @param {URLSearchParams} conditions */
  async search(conditions) {
    const {momentsChoose, searching, momentsSlow, momentsTooLong, momentsNone} = t.recordings;
    const say = (/** @type {string} */ text) => setText(byId('moments-says'), text);
    if (!String(conditions)) {
      say(momentsChoose);
      return;
    }
    say(searching);
    const slow = setTimeout(() => say(momentsSlow), SLOW_MS);
    button('moments-find').disabled = true;
    try {
      const {moments, more} = await this.api.moments(conditions);
      this.draw(moments);
      say(moments.length ? STRINGS.moments(moments.length, more) : momentsNone);
      byId('moments-says').scrollIntoView({block: 'center'});
    } catch (fault) {
      this.draw([]);
      say(fault instanceof Refused && fault.status === TOO_LONG ? momentsTooLong
        : STRINGS.refused(fault instanceof Error ? fault.message : String(fault)));
    } finally {
      clearTimeout(slow);
      button('moments-find').disabled = false;
    }
  }

  /** @param {Moment[]} moments */
  draw(moments) {
    for (const canvas of byId('moments-list').querySelectorAll('canvas')) this.thumbnails.sight.unobserve(canvas);
    this.moments = moments;
    show(byId('moments-csv'), moments.length > 0);
    byId('moments-list').replaceChildren(...moments.map((moment) => this.row(moment)));
    this.current(location.hash);
  }

  /** @param {Moment} moment */
  row(moment) {
    const {start_ms: startMs, seconds, session, driver, cause, worst, drive, file, file_ms: fileMs} = moment;
    const link = document.createElement('a');
    const about = make('span', '');
    about.className = 'about';
    const figures = Object.entries(worst).map(([name, value]) => STRINGS.worst(name, WORST[name](value)));
    about.append(
      make('strong', STRINGS.second(startMs)),
      make('span', [session.split('/')[0], driver && driverName(driver), STRINGS.duration(seconds)].filter(Boolean).join(' · ')),
      make('span', [cause && STRINGS.cause(cause), ...figures].filter(Boolean).join(' · ')));
    if (drive) {
      link.href = linkOf(moment);
      link.addEventListener('click', () => {
        if (link.hash === location.hash) this.seek(momentIn(link.hash) ?? 0);
      });
    } else about.append(make('em', t.recordings.momentsGone));
    const pictureS = Math.max(0, (startMs - fileMs) / 1000 - LEAD_S);
    link.append(this.thumbnails.canvas(file, pictureS, Boolean(drive)), about);
    const row = document.createElement('li');
    row.append(link);
    return row;
  }

  /** Marks the moment that is open, and shows it beside its drive; back in the list, it has the
   * focus. @param {string} hash */
  current(hash) {
    for (const link of byId('moments-list').querySelectorAll('a')) {
      const was = link.hasAttribute('aria-current');
      const is = hash !== '' && link.hash === hash;
      if (is) setAttr(link, 'aria-current', 'true');
      else link.removeAttribute('aria-current');
      if (is && !was) link.scrollIntoView({block: 'nearest'});
      if (was && !hash) link.focus();
    }
  }

  /** Saves the moments of the list as a file. */
  save() {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([csvOf(this.moments, location.href)], {type: 'text/csv'}));
    link.download = 'moments.csv';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  }
}
