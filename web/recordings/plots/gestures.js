/**
 * Gestures of fingers, mouse and wheel on a plot. Places are shares of its width.
 *
 *   push          go to that moment           move           the values there
 *   drag          show the marked span         two fingers    zoom and move
 *   wheel         zoom; sideways: move        double push    show all
 */

import {capture} from '../../lib/dom.js';

const DRAG_PX = 6;
const DOUBLE_MS = 350;
/** A page that scrolls under the pointer goes on scrolling. */
const SCROLLED_MS = 400;
const WHEEL_LINE_PX = 24;
const ZOOM_PER_PX = 1.003;

/**
 * @typedef {{seek: (share: number) => void, hover: (share: number | null) => void,
 *   mark: (a: number, b: number) => void, show: (a: number, b: number) => void,
 *   zoom: (factor: number, share: number) => boolean, pan: (share: number) => void,
 *   all: () => void}} Acts `mark`: while it is dragged; `zoom` is false if it did nothing
 */

export class Gestures {
  /** @param {HTMLElement} host of all plots @param {Acts} acts */
  constructor(host, acts) {
    this.acts = acts;
    /** Where each finger is. @type {Map<number, number>} */
    this.at = new Map();
    /** @type {{field: Element, x: number, dragged: boolean, pinched: boolean} | null} */
    this.began = null;
    this.pushedMs = -Infinity;
    this.scrolledMs = -Infinity;
    host.addEventListener('pointerdown', (event) => this.down(event));
    host.addEventListener('pointermove', (event) => this.move(event));
    host.addEventListener('pointerup', (event) => this.up(event));
    host.addEventListener('pointercancel', (event) => this.cancel(event));
    host.addEventListener('pointerleave', () => acts.hover(null));
    host.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
    addEventListener('scroll', () => {
      this.scrolledMs = performance.now();
    }, {capture: true, passive: true});
  }

  /** @param {PointerEvent} event */
  down(event) {
    const field = fieldOf(event);
    if (!field || event.button > 0 || !capture(field, event.pointerId)) return;
    this.at.set(event.pointerId, event.clientX);
    if (this.at.size > 1) {
      if (this.began) this.began.pinched = true;
      this.acts.mark(0, 0);
      return;
    }
    this.began = {field, x: event.clientX, dragged: false, pinched: false};
  }

  /** @param {PointerEvent} event */
  move(event) {
    const {began} = this;
    if (!began || !this.at.has(event.pointerId)) {
      const field = fieldOf(event);
      this.acts.hover(field && event.pointerType !== 'touch' ? share(field, event.clientX) : null);
      return;
    }
    if (began.pinched) {
      this.pinch(began.field, event);
      return;
    }
    this.at.set(event.pointerId, event.clientX);
    began.dragged ||= Math.abs(event.clientX - began.x) > DRAG_PX;
    if (began.dragged) this.acts.mark(share(began.field, began.x), share(began.field, event.clientX));
  }

  /** @param {Element} field @param {PointerEvent} event */
  pinch(field, event) {
    const before = [...this.at.values()];
    this.at.set(event.pointerId, event.clientX);
    const after = [...this.at.values()];
    if (before.length < 2) return;
    const {width} = field.getBoundingClientRect();
    const [middleBefore, middle] = [before, after].map(([a, b]) => (a + b) / 2);
    const [apartBefore, apart] = [before, after].map(([a, b]) => Math.max(20, Math.abs(a - b)));
    this.acts.pan((middleBefore - middle) / width);
    this.acts.zoom(apartBefore / apart, share(field, middle));
  }

  /** @param {PointerEvent} event */
  up(event) {
    const {began} = this;
    this.at.delete(event.pointerId);
    if (!began || this.at.size > 0) return;
    this.began = null;
    const [a, b] = [share(began.field, began.x), share(began.field, event.clientX)];
    this.acts.mark(0, 0);
    if (began.pinched) return;
    if (began.dragged) {
      this.acts.show(a, b);
      return;
    }
    const twice = event.timeStamp - this.pushedMs < DOUBLE_MS;
    this.pushedMs = twice ? -Infinity : event.timeStamp;
    if (twice) this.acts.all();
    else this.acts.seek(b);
  }

  /** @param {PointerEvent} event */
  cancel(event) {
    this.at.delete(event.pointerId);
    if (this.at.size > 0) return;
    this.began = null;
    this.acts.mark(0, 0);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const field = fieldOf(event);
    const line = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_LINE_PX : 1;
    const [x, y] = [event.deltaX * line, event.deltaY * line];
    if (!field || performance.now() - this.scrolledMs < SCROLLED_MS) return;
    if (Math.abs(x) > Math.abs(y) || event.shiftKey) {
      this.acts.pan((x || y) / field.getBoundingClientRect().width);
      event.preventDefault();
    } else if (this.acts.zoom(ZOOM_PER_PX ** y, share(field, event.clientX))) {
      event.preventDefault();
    }
  }
}

/** @param {Event} event */
const fieldOf = ({target}) => target instanceof Element ? target.closest('.field') : null;

/** @param {Element} field @param {number} clientX */
function share(field, clientX) {
  const {left, width} = field.getBoundingClientRect();
  return Math.min(1, Math.max(0, (clientX - left) / Math.max(width, 1)));
}
