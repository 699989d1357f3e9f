/**
 * A drive as a film or a zip: requests it from the car, hands it to the browser's downloads,
 * and shows how far it is. See library/api/exports.py.
 */

import {fill, said, t} from '../../lang/words.js';
import {button, byId, downloads, make, setAttr, setText, show} from '../../lib/dom.js';
import {EXPORT_STRINGS as SAYS} from './export-strings.js';
import {STRINGS} from '../strings.js';

/** @import {Drive, Export, ExportApi} from '../types.js' */

const ASK_EVERY_MS = 500;
/** The rate is that of the last few seconds. */
const RATE_OVER_MS = 5000;
const STOPPED_LOOKS = 6;
const KINDS = /** @type {const} */ (['film', 'zip', 'csv', 'parquet']);
const WORKING = ['planning', 'ready', 'sending'];
/** A larger film would not fit into a phone's memory. */
const SHARE_MOST_BYTES = 500e6;
const FILM_TYPE = 'video/mp4';

/**
 * Bytes a second over the last seconds, and how long the rest takes; null: not known yet.
 * Pure; the oldest of `seen` is given up.
 */
export class Rate {
  constructor() {
    /** @type {{ms: number, done: number}[]} */
    this.seen = [];
  }

  /** @param {number} nowMs @param {number} done bytes so far */
  add(nowMs, done) {
    if (done < (this.seen.at(-1)?.done ?? 0)) this.seen = [];
    this.seen.push({ms: nowMs, done});
    while (this.seen.length > 2 && nowMs - this.seen[1].ms >= RATE_OVER_MS) this.seen.shift();
  }

  get bytesS() {
    const [first, last] = [this.seen[0], this.seen.at(-1)];
    if (!last || last.ms <= first.ms || last.done <= first.done) return null;
    return (last.done - first.done) * 1000 / (last.ms - first.ms);
  }

  /** @param {number} total */
  leftS(total) {
    const {bytesS} = this;
    const done = this.seen.at(-1)?.done ?? 0;
    return bytesS ? Math.max(0, total - done) / bytesS : null;
  }
}

export class Exports {
  /** @param {ExportApi} api */
  constructor(api) {
    this.api = api;
    /** @type {Drive | null} */
    this.drive = null;
    /** @type {Export | null} */
    this.now = null;
    this.rate = new Rate();
    /** Film that waits for another push. @type {File | null} */
    this.film = null;
    this.sharing = false;
    /** Number of the current request: answers to older ones are dropped. */
    this.turn = 0;
    for (const kind of KINDS) {
      button(`export-${kind}`).addEventListener('click', () => void this.begin(kind));
    }
    button('export-share').addEventListener('click', () => void this.share());
    button('export-cancel').addEventListener('click', () => void this.cancel());
    // A running download continues without the page; a plan does not.
    addEventListener('pagehide', () => {
      if (this.now?.state === 'planning') void this.api.cancel(this.now.id);
    });
  }

  /** Another drive is on the page; running exports continue. @param {Drive} drive */
  open(drive) {
    this.drive = drive;
    const hasPictures = drive.parts.some(({pictures}) => pictures > 0);
    show(button('export-film'), hasPictures);
    const probe = {files: [new File([''], 'film.mp4', {type: FILM_TYPE})]};
    show(button('export-share'), hasPictures && navigator.canShare?.(probe) === true);
    this.keepFilm(null);
  }

  /** @param {File | null} film */
  keepFilm(film) {
    this.film = film;
    setText(button('export-share'), film ? t.recordings.shareNow : t.recordings.share);
  }

  /** Opens the browser's share sheet with the film, which it fetches first. */
  async share() {
    const film = this.film ?? await this.fetchFilm();
    if (!film) return;
    this.keepFilm(film);
    this.say(fill(t.recordings.shareReady, {name: film.name}));
    try {
      await navigator.share({files: [film]});
      this.keepFilm(null);
      this.say('');
    } catch (fault) {
      // NotAllowedError: the push was too long ago; AbortError: closed. Another push opens it again.
      const name = fault instanceof DOMException ? fault.name : '';
      if (name !== 'NotAllowedError' && name !== 'AbortError') this.say(STRINGS.refused(String(fault)));
    }
  }

  /** The film of this drive; null if it did not come whole. @returns {Promise<File | null>} */
  async fetchFilm() {
    /** @type {Promise<File | null>} */
    let coming = Promise.resolve(null);
    let tooLarge = '';
    this.sharing = true;
    const turn = this.turn + 1;
    await this.begin('film', ({id, name, total}) => {
      if (total > SHARE_MOST_BYTES) {
        tooLarge = fill(t.recordings.shareTooLarge,
          {name, size: STRINGS.size(total), limit: STRINGS.size(SHARE_MOST_BYTES)});
        void this.cancel();
        return;
      }
      coming = fetch(this.api.exportFile(id)).then(async (answer) =>
        (answer.ok ? new File([await answer.blob()], name, {type: FILM_TYPE}) : null)).catch(() => null);
    });
    this.sharing = false;
    if (tooLarge) this.say(tooLarge);
    const film = await coming;
    return turn === this.turn ? film : null;
  }

  /** @param {typeof KINDS[number]} kind @param {(now: Export) => void} [take] called once it is ready */
  async begin(kind, take = (now) => this.download(now)) {
    const {drive} = this;
    if (!drive) return;
    this.turn += 1;
    this.keepFilm(null);
    const {turn} = this;
    this.rate = new Rate();
    this.say(t.recordings.asking);
    this.missing([]);
    for (const kind of [...KINDS, 'share']) setAttr(button(`export-${kind}`), 'disabled', '');
    try {
      await this.follow(turn, take, await this.api.begin({
        kind, files: drive.parts.map(({name}) => name),
        from_ms: Math.max(0, drive.startMs), to_ms: drive.startMs + drive.seconds * 1000,
      }));
    } catch (fault) {
      const why = fault instanceof Error ? fault.message : String(fault);
      if (turn === this.turn) this.say(STRINGS.refused(why));
    }
    if (turn === this.turn) this.idle();
  }

  /**
   * Looks how far it is until it is over.
   * @param {number} turn @param {(now: Export) => void} take @param {Export} begun
   */
  async follow(turn, take, begun) {
    let [now, taken, looks] = [begun, false, 0];
    while (turn === this.turn) {
      this.now = now;
      this.draw(now);
      if (now.state === 'ready' && !taken) {
        taken = true;
        take(now);
      }
      // A phone may leave off, ask its user, and begin again.
      looks = WORKING.includes(now.state) ? 0 : looks + 1;
      if (looks && (now.state !== 'stopped' || looks > STOPPED_LOOKS)) return;
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
      now = await this.api.exported(begun.id).catch((fault) => {
        if (fault instanceof TypeError) return now; // no network: it may come back
        throw fault;
      });
    }
  }

  /** Hands it to the browser's downloads. @param {Export} now */
  download({id, name}) {
    const link = document.createElement('a');
    downloads(link, this.api.exportFile(id), name);
    link.click();
  }

  async cancel() {
    const {now} = this;
    this.turn += 1;
    this.idle();
    this.say(t.recordings.cancelled);
    if (now) await this.api.cancel(now.id).catch(() => undefined);
  }

  idle() {
    this.now = null;
    for (const kind of [...KINDS, 'share']) button(`export-${kind}`).removeAttribute('disabled');
    show(byId('export-bar'), false);
    show(button('export-cancel'), false);
  }

  /** @param {Export} now */
  draw(now) {
    const {state, done, total, exact} = now;
    this.rate.add(performance.now(), done);
    const bar = byId('export-bar', HTMLProgressElement);
    bar.max = Math.max(total, 1);
    bar.value = Math.min(done, total);
    const working = WORKING.includes(state);
    show(bar, working);
    show(button('export-cancel'), working);
    const {bytesS} = this.rate;
    const leftS = this.rate.leftS(total);
    this.say(
      state === 'failed' ? STRINGS.refused(said(now.fault))
        : this.sharing && state !== 'planning' && state !== 'stopped' ? fill(t.recordings.fetching, {name: now.name})
        : state === 'sent' ? SAYS.sent(now.name, done) : SAYS[state](now.name),
      state === 'planning' ? SAYS.planned(done / Math.max(total, 1), leftS)
        : state === 'sending' ? SAYS.progress(done, total, exact, bytesS, leftS) : '',
    );
    this.missing(now.missing.map(said));
  }

  /** @param {string} text @param {string} [figures] not read out each time */
  say(text, figures = '') {
    setText(byId('export-says'), text);
    setText(byId('export-figures'), figures);
  }

  /** @param {string[]} texts missing parts */
  missing(texts) {
    const list = byId('export-missing');
    if (list.childElementCount === texts.length) return;
    list.replaceChildren(...texts.map((text) => make('li', text)));
    show(byId('export-missing-part'), texts.length > 0);
  }
}
