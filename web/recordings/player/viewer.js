/** One drive on the page: picture, transport, marks, plots, files. */

import {t} from '../../lang/words.js';
import {CameraDirection} from '../../lib/camera_direction.js';
import {button, byId, downloads, input, make, setAttr, setText, show} from '../../lib/dom.js';
import {API} from '../api.js';
import {isAway, marksOf} from '../drives.js';
import {Exports} from './exports.js';
import {firstPictureS} from './first.js';
import {Measurements} from '../plots/measurements.js';
import {Picture} from './picture.js';
import {Player, SPEEDS} from './player.js';
import {Plots} from '../plots/plots.js';
import {STRINGS} from '../strings.js';
import {UnitCache} from './units.js';

/** @import {Drive} from '../types.js' */

const JUMP_S = 5;
const SAY_AFTER_MS = 700;
const LOOK_AGAIN_MS = 1000;

export class Viewer {
  constructor() {
    this.picture = new Picture({
      canvas: byId('picture', HTMLCanvasElement),
      video: byId('picture-mse', HTMLVideoElement),
      wanted: new URLSearchParams(location.search).get('path'),
      lost: () => this.player?.lost(),
    });
    this.scrub = input('scrub');
    this.speed = byId('speed', HTMLSelectElement);
    this.plots = new Plots(byId('plots'), {
      seek: (timeS) => this.seek(timeS),
      look: (fromS, toS) => void this.measurements?.look(fromS, toS),
      changed: () => this.updateZoom(),
    });
    this.measurements = new Measurements({
      plots: this.plots, gaps: byId('gaps'), fetch: API.table,
      failed: (fault) => {
        this.fault = fault;
      },
    });
    this.exports = new Exports(API);
    this.direction = new CameraDirection();
    byId('look').append(this.direction.element);
    /** @type {Drive | null} */
    this.drive = null;
    /** @type {Player | null} */
    this.player = null;
    /** @type {UnitCache | null} */
    this.units = null;
    this.fault = '';
    /** A drive was opened, and whether there is a picture is not known yet. */
    this.looking = false;
    /** @type {Promise<() => void> | null} */
    this.toggleSheet = null;
    this.waitingMs = 0;
    this.wire();
  }

  wire() {
    this.speed.append(...SPEEDS.map((speed) => new Option(STRINGS.speed(speed), String(speed))));
    button('play').addEventListener('click', () => this.player?.toggle());
    button('previous').addEventListener('click', () => this.player?.step(-1));
    button('next').addEventListener('click', () => this.player?.step(1));
    this.scrub.addEventListener('input', () => this.seek(Number(this.scrub.value)));
    this.speed.addEventListener('change', () =>
      this.player?.setSpeed(Number(this.speed.value)));
    button('zoom-in').addEventListener('click', () => this.plots.zoom('in'));
    button('zoom-out').addEventListener('click', () => this.plots.zoom('out'));
    button('zoom-all').addEventListener('click', () => this.plots.all());
    button('sheet-toggle').addEventListener('click', () => void this.openSheet());
    button('rerun-copy').addEventListener('click', () => {
      getSelection()?.selectAllChildren(byId('rerun'));
      // Pages of plain http, beyond this machine, have no navigator.clipboard.
      if (document.execCommand('copy')) setText(button('rerun-copy'), t.recordings.copied);
    });
    byId('stage').addEventListener('click', () => this.player?.toggle());
    show(button('full'), document.fullscreenEnabled === true);
    button('full').addEventListener('click', () => void toggleFull());
    addEventListener('keydown', (event) => this.key(event));
    const paint = (/** @type {number} */ nowMs) => {
      requestAnimationFrame(paint);
      this.paint(nowMs);
    };
    requestAnimationFrame(paint);
  }

  /** @param {Drive} drive @param {number} fromS */
  open(drive, fromS) {
    this.close();
    this.drive = drive;
    this.fault = '';
    setText(byId('viewer-title'), drive.title || STRINGS.when(drive.startMs));
    setAttr(byId('viewer'), 'data-away', String(isAway(drive)));
    if (isAway(drive)) return;
    this.units = new UnitCache(drive, {
      fetch: API.units,
      failed: (fault) => {
        this.fault = fault;
      },
    });
    this.player = new Player({
      seconds: drive.seconds, units: this.units, picture: this.picture,
      changed: () => this.updateTransport(),
    });
    this.player.seek(fromS);
    this.scrub.max = String(drive.seconds);
    this.listMarks(drive);
    this.listFiles(drive);
    this.listElsewhere(drive);
    this.exports.open(drive);
    this.updateTransport();
    this.looking = true;
    void this.measurements.open(drive);
  }

  /** Seeks the first picture if it opened at a time without one. @param {Player} player */
  async lookForPicture(player) {
    if (!this.looking || player.waiting || !this.drive) return;
    this.looking = false;
    if (!player.blank) return;
    const {drive} = this;
    const {timeS} = player;
    let firstS = null;
    try {
      firstS = await firstPictureS(drive, timeS, API.thumbnail);
    } catch {
      // The file is being written, or the link failed.
      setTimeout(() => { this.looking = this.drive === drive; }, LOOK_AGAIN_MS);
    }
    // The position may have changed during the request.
    if (firstS !== null && player.timeS === timeS) player.seek(firstS);
    if (firstS !== null) player.firstS = firstS;
  }

  close() {
    if (button('sheet-toggle').getAttribute('aria-expanded') === 'true') void this.openSheet();
    this.player?.pause();
    this.units?.close();
    this.picture.clear();
    void this.measurements.open(null);
    this.drive = this.player = this.units = null;
  }

  /** @param {number} timeS */
  seek(timeS) {
    this.player?.seek(timeS);
  }

  /** @param {Drive} drive */
  listMarks(drive) {
    const marks = marksOf(drive);
    show(byId('marks-part'), marks.length > 0);
    byId('marks').replaceChildren(...marks.map(({t: atS, text}) => {
      const row = document.createElement('li');
      const go = document.createElement('button');
      go.textContent = STRINGS.mark(atS, text);
      go.addEventListener('click', () => this.seek(atS));
      row.append(go);
      return row;
    }));
    byId('ticks').replaceChildren(...marks.map(({t: atS}) => {
      const tick = document.createElement('i');
      tick.style.setProperty('--at', String(atS / Math.max(drive.seconds, 0.001)));
      return tick;
    }));
  }

  /** @param {Drive} drive */
  listFiles(drive) {
    byId('files').replaceChildren(...drive.parts.map((part) => {
      const row = document.createElement('li');
      const more = [STRINGS.length(part.seconds), STRINGS.size(part.bytes)];
      if (part.lost) more.push(part.lost);
      if (part.state === 'open') {
        row.append(make('span', part.name));
        more.push(t.recordings.openFile);
      } else {
        const link = document.createElement('a');
        downloads(link, API.file(part.name), part.name);
        link.textContent = part.name;
        link.setAttribute('aria-label', STRINGS.download(part.name));
        row.append(link, foxglove(part.name));
      }
      row.append(make('span', more.join(' · ')));
      return row;
    }));
  }

  /** Fills in the rerun command for the drive's closed files. @param {Drive} drive */
  listElsewhere(drive) {
    const names = drive.parts.filter(({state}) => state !== 'open').map(({name}) => name);
    setText(byId('rerun'), `rerun ${names.join(' ')}`);
    setText(button('rerun-copy'), t.recordings.copy);
  }

  /** Opens the contact sheet on demand. */
  async openSheet() {
    this.toggleSheet ??= import('./sheet.js').then(({sheetButton}) =>
      sheetButton(() => this.drive, (timeS) => {
        this.seek(timeS);
        byId('stage').scrollIntoView({block: 'nearest'});
      }));
    (await this.toggleSheet)();
  }

  /** Updates the controls after play, pause or another speed. */
  updateTransport() {
    const {player} = this;
    const play = button('play');
    setAttr(play, 'aria-label', player?.playing ? t.recordings.pause : t.recordings.play);
    setAttr(play, 'data-plays', String(player?.playing ?? false));
    this.speed.value = String(player?.speed ?? 1);
  }

  /** Shows the stretch of the plots. */
  updateZoom() {
    const {fromS, toS, whole} = this.plots.view;
    show(button('zoom-all'), !whole);
    setAttr(button('zoom-out'), 'aria-disabled', String(whole));
    setText(byId('zoom-says'), whole ? '' : STRINGS.stretch(fromS, toS));
  }

  /** @param {number} nowMs */
  paint(nowMs) {
    const {player, drive} = this;
    if (!player || !drive) return;
    player.tick(nowMs);
    void this.lookForPicture(player);
    this.picture.settle(nowMs);
    const {timeS} = player;
    if (document.activeElement !== this.scrub || player.playing) {
      this.scrub.value = String(timeS);
    }
    setAttr(this.scrub, 'aria-valuetext', STRINGS.atSpoken(timeS, drive.seconds));
    setText(byId('time'), STRINGS.at(timeS, drive.seconds));
    setText(byId('clock'), STRINGS.clock(drive.startMs + timeS * 1000));
    this.plots.cursor(timeS);
    setText(byId('reason'), this.measurements.reason(timeS));
    const [pan, tilt] = ['pan', 'tilt'].map((name) => this.measurements.servo(name, timeS));
    show(byId('look'), Boolean(pan || tilt));
    if (pan || tilt) this.direction.draw(pan, tilt);
    this.updateStage(nowMs);
  }

  /** Shows why the picture is black. @param {number} nowMs */
  updateStage(nowMs) {
    const waiting = this.player?.waiting ?? false;
    if (!waiting) {
      this.waitingMs = nowMs;
      this.fault = '';
    }
    const late = waiting && nowMs - this.waitingMs > SAY_AFTER_MS;
    const message = this.picture.unsupported ? t.recordings.unsupported
      : this.player?.blank ? t.recordings.noPicture
        : this.fault ? STRINGS.failedDrive(this.fault)
          : late ? t.recordings.loadingDrive : '';
    setText(byId('stage-says'), message);
    show(byId('stage-says'), message !== '');
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const {player, drive} = this;
    if (!player || !drive || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof Element ? event.target.tagName : '';
    if (on === 'SELECT' || (on === 'INPUT' && event.target !== this.scrub)) return;
    // A button that has the focus keeps its own key.
    if (event.key === ' ' && (on === 'BUTTON' || on === 'A')) return;
    const act = /** @type {Record<string, () => void>} */ ({
      ' ': () => player.toggle(),
      k: () => player.toggle(),
      ArrowLeft: () => player.seek(player.timeS - JUMP_S),
      ArrowRight: () => player.seek(player.timeS + JUMP_S),
      Home: () => player.seek(0),
      End: () => player.seek(drive.seconds),
      ',': () => player.step(-1),
      '.': () => player.step(1),
      '<': () => player.faster(-1),
      '>': () => player.faster(1),
      m: () => this.nextMark(),
      f: () => void toggleFull(),
      '+': () => this.plots.zoom('in'),
      '-': () => this.plots.zoom('out'),
      '0': () => this.plots.all(),
    })[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  nextMark() {
    if (!this.drive || !this.player) return;
    const {timeS} = this.player;
    const marks = marksOf(this.drive);
    const next = marks.find((mark) => mark.t > timeS + 0.01) ?? marks[0];
    if (next) this.seek(next.t);
  }
}

/** Picture and controls fill the screen, or no longer do. */
async function toggleFull() {
  try {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await byId('player').requestFullscreen({navigationUI: 'hide'});
  } catch (fault) {
    // TypeError: the browser refuses; the page works without.
    if (!(fault instanceof TypeError)) throw fault;
  }
}

/** A link by which Foxglove on this computer opens a file. @param {string} name */
function foxglove(name) {
  const link = document.createElement('a');
  const query = new URLSearchParams({
    ds: 'remote-file', 'ds.url': new URL(API.file(name), location.href).href,
  });
  link.href = `foxglove://open?${query}`;
  link.textContent = 'Foxglove';
  link.setAttribute('aria-label', STRINGS.openFoxglove(name));
  return link;
}
