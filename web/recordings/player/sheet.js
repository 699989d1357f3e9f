/**
 * The contact sheet: a picture of each second of a drive, a minute a row group. Rows
 * far from view have no pictures: an hour of them would be 3,600 canvases. One picture is
 * in the order of Tab; the arrow keys go from there.
 */

import {t, fill} from '../../lang/words.js';
import {button, byId, make, setAttr, setText, show} from '../../lib/dom.js';
import {parseVideo} from '../../lib/wire.js';
import {API} from '../api.js';
import {STRINGS} from '../strings.js';
import {drawThumbnail} from '../list/thumbnail.js';

/** @import {Drive, Part} from '../types.js' */

const MINUTE_S = 60;
const HEADER = 20;
/** Pixels; half a screen ahead is fetched. HEIGHT is that of a row before its pictures. */
const [WIDTH, HEIGHT] = [128, 96];

/**
 * The stretches of a drive that a request brings: at most a minute of one file.
 * @param {Drive} drive
 */
export function stretchesOf(drive) {
  /** @type {{part: Part, fromS: number, seconds: number, atS: number}[]} */
  const stretches = [];
  for (const part of drive.parts) {
    if (!part.pictures) continue;
    for (let fromS = part.from_s; fromS < part.to_s; fromS += MINUTE_S) {
      const seconds = Math.min(MINUTE_S, part.to_s - fromS);
      stretches.push({part, fromS, seconds, atS: part.startS + fromS});
    }
  }
  return stretches;
}

/** Cuts an answer into frames. @param {ArrayBuffer} bytes */
export function framesOf(bytes) {
  const view = new DataView(bytes);
  const frames = [];
  for (let at = 0; at < bytes.byteLength;) {
    const end = at + HEADER + view.getUint32(at + 16, true);
    frames.push(parseVideo(bytes.slice(at, end)));
    at = end;
  }
  return frames;
}

export class Sheet {
  /** @param {(timeS: number) => void} seek */
  constructor(seek) {
    this.seek = seek;
    this.part = byId('sheet');
    /** Pictures are drawn one after the other. @type {Promise<void>} */
    this.drawing = Promise.resolve();
    this.sight = new IntersectionObserver((entries) => {
      for (const {isIntersecting, target} of entries) this.seen(target, isIntersecting);
    }, {rootMargin: '50% 0px'});
    /** @type {Map<Element, ReturnType<typeof stretchesOf>[number]>} */
    this.stretches = new Map();
    /** Rows near enough to have pictures. @type {Set<Element>} */
    this.near = new Set();
    /** @type {Drive | null} */
    this.drive = null;
    this.part.addEventListener('click', ({target}) => {
      const at = target instanceof Element ? target.closest('button')?.dataset.at : null;
      if (at) this.seek(Number(at));
    });
    this.part.addEventListener('keydown', (event) => this.key(event));
  }

  /** @param {Drive} drive */
  open(drive) {
    if (drive.id === this.drive?.id) return;
    this.close();
    this.drive = drive;
    for (const stretch of stretchesOf(drive)) {
      const row = make('div', '');
      row.className = 'sheet-minute';
      row.style.minHeight = `${HEIGHT}px`;
      this.stretches.set(row, stretch);
      this.part.append(row);
      this.sight.observe(row);
    }
    if (!this.stretches.size) this.part.append(make('p', t.recordings.noPicture));
  }

  close() {
    this.sight.disconnect();
    this.stretches.clear();
    this.near.clear();
    this.part.replaceChildren();
    this.drive = null;
  }

  /** Fills a minute that comes near, empties one that is far. @param {Element} row @param {boolean} near */
  seen(row, near) {
    if (near) {
      this.near.add(row);
      if (!row.childElementCount) this.drawing = this.drawing.then(() => this.fill(row));
    } else if (!row.contains(document.activeElement)) {
      this.near.delete(row);
      if (!row.childElementCount) return;
      /** @type {HTMLElement} */ (row).style.minHeight = `${row.clientHeight}px`;
      row.replaceChildren();
    }
  }

  /** @param {Element} row */
  async fill(row) {
    const stretch = this.stretches.get(row);
    const {drive} = this;
    if (!stretch || !drive || row.childElementCount || !this.near.has(row)) return;
    const {part, fromS, seconds, atS} = stretch;
    try {
      const frames = framesOf(await API.sheet(part.name, fromS, seconds));
      const whole = document.createElement('canvas');
      let fault = null;
      for (const {captureUs, unit} of frames) {
        // A picture that cannot be decoded is left out; the row has the others.
        fault = await drawThumbnail(unit, whole).then(() => null, (error) => error);
        if (this.drive !== drive) return;
        if (!this.near.has(row)) {
          row.replaceChildren();  // it went far meanwhile: whole or empty
          return;
        }
        if (!fault) row.append(this.picture(whole, (captureUs / 1000 - drive.startMs) / 1000));
      }
      if (fault && !row.childElementCount) throw fault;
      if (!frames.length) row.append(make('p', fill(t.recordings.sheetNone, {time: STRINGS.length(atS)})));
    } catch (fault) {
      const why = fault instanceof Error ? fault.message : String(fault);
      row.replaceChildren(make('p', STRINGS.failedDrive(why)));
    }
  }

  /** @param {HTMLCanvasElement} whole @param {number} timeS */
  picture(whole, timeS) {
    const element = make('button', '');
    const small = document.createElement('canvas');
    [small.width, small.height] = [WIDTH, Math.round(WIDTH * whole.height / whole.width)];
    small.getContext('2d')?.drawImage(whole, 0, 0, small.width, small.height);
    small.setAttribute('aria-hidden', 'true');
    element.append(small, make('span', STRINGS.length(timeS)));
    element.dataset.at = String(Math.max(0, timeS));
    element.setAttribute('aria-label', fill(t.recordings.sheetGo, {time: STRINGS.spoken(timeS)}));
    element.tabIndex = this.part.querySelector('button[tabindex="0"]') ? -1 : 0;
    return element;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const all = [...this.part.querySelectorAll('button')];
    const at = all.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (at < 0) return;
    const across = all.filter(({offsetTop}) => offsetTop === all[at].offsetTop).length;
    const step = /** @type {Record<string, number>} */ ({
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across,
      Home: -at, End: all.length - 1 - at,
    })[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();  // they would move the film, too
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    all[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

/** The button that opens it. @param {() => Drive | null} drive @param {(timeS: number) => void} seek */
export function sheetButton(drive, seek) {
  const sheet = new Sheet(seek);
  const toggle = button('sheet-toggle');
  return () => {
    const now = drive();
    const open = toggle.getAttribute('aria-expanded') !== 'true';
    setAttr(toggle, 'aria-expanded', String(open));
    setText(toggle, open ? t.recordings.sheetClose : t.recordings.sheetOpen);
    show(byId('sheet'), open);
    if (open && now) sheet.open(now);
    else sheet.close();
  };
}
