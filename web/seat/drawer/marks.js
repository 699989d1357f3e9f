/** Buttons that save the shown picture as a file on this device, and mark the moment in the
 * car's recording. One tap, P and M, or X and Y of a gamepad. Loads with the drawer. */

import {t} from '../../lang/words.js';
import {byId, make, setAttr, show, svg} from '../../lib/dom.js';
import {DRAWER_STRINGS} from './drawer-strings.js';
import {toast} from '../toast.js';

/** @import {State, Upward} from '../../lib/types.js' */

const TYPE = 'image/jpeg';
const QUALITY = 0.95;
const CAMERA = 'M4 8h4l2-3h4l2 3h4v11H4ZM12 10a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4';
const FLAG = 'M6 21V4M6 5h12l-3 4 3 4H6';

/**
 * The file of a picture: named like the car's recordings, by when it was captured. Pure.
 * @param {string} car @param {number} captured ms since 1970
 */
export function fileName(car, captured) {
  const time = new Date(captured).toISOString().replace(/[-:]|\.\d+/g, '');
  const name = car.replace(/[^\p{L}\p{N}_-]+/gu, '-').replace(/^-+|-+$/g, '') || 'car';
  return `${name}-${time}.jpg`;
}

/**
 * Reason why the moment cannot be marked, or ''. Pure.
 * @param {Pick<State, 'recording' | 'may_drive'> | null} state
 */
export function markRefusal(state) {
  const texts = t.marks;
  if (!state) return texts.noLink;
  if (!state.recording) return texts.noRecorder;
  return state.may_drive ? '' : texts.locked;
}

export class MarkButtons {
  /**
   * @param {{video: import('../../video/video.js').Video,
   *   send: (message: Upward) => boolean}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.send = parts.send;
    this.car = '';
    /** @type {State | null} */
    this.state = null;
    const texts = t.marks;
    const box = make('div', '');
    box.className = 'moments';
    this.marking = icon('mark-now', texts.mark, FLAG, () => this.mark());
    box.append(this.marking, icon('snapshot', texts.snapshot, CAMERA, () => this.snapshot()));
    byId('stop').before(box);
  }

  /** @param {State} state */
  update(state) {
    this.state = state;
    show(this.marking, markRefusal(state) === '');
  }

  /** Marks this moment in the recording. */
  mark() {
    const why = markRefusal(this.state) ||
      (this.send({kind: 'mark', text: ''}) ? '' : t.marks.noLink);
    toast(why || t.recorder.marked, why ? 'warn' : 'calm');
  }

  /** Saves the picture that is on the glass. */
  snapshot() {
    const {video} = this.parts;
    if (video.count.shown === 0) {
      toast(t.noPicture, 'warn');
      return;
    }
    const name = fileName(this.car, Date.now() - (performance.now() - video.capturedMs));
    this.drawn().toBlob((file) => {
      if (file) save(file, name);
      toast(file ? DRAWER_STRINGS.saved(name) : t.marks.notSaved,
        file ? 'calm' : 'warn');
    }, TYPE, QUALITY);
  }

  /** The canvas with the picture: the page's own, or a copy of its <video>. */
  drawn() {
    const {canvas, video} = this.parts.video.parts;
    if (!canvas.hidden) return canvas;
    const copy = document.createElement('canvas');
    copy.width = video.videoWidth;
    copy.height = video.videoHeight;
    copy.getContext('2d', {alpha: false})?.drawImage(video, 0, 0);
    return copy;
  }
}

/** @param {Blob} file @param {string} name */
function save(file, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {string} id @param {string} label @param {string} path @param {() => void} act */
export function icon(id, label, path, act) {
  const element = document.createElement('button');
  element.id = id;
  element.className = 'plate icon';
  setAttr(element, 'aria-label', label);
  setAttr(element, 'title', label);
  const picture = svg('svg', {viewBox: '0 0 24 24', 'aria-hidden': 'true'});
  picture.append(svg('path', {d: path}));
  element.append(picture);
  element.addEventListener('click', act);
  return element;
}
