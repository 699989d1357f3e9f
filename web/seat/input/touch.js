/** Two thumbs: one pad drives (up, down), one steers (left, right). Each springs back. */

import {clamp, stick} from '../../lib/curves.js';
import {capture} from '../../lib/dom.js';

/** A thumb's way to full deflection, px. */
const TRAVEL_PX = 62;

/**
 * One pad. The stick stands where the thumb lands and follows it on one axis.
 * The pad's own element takes the pointer, so two thumbs never mix.
 */
export class Pad {
  /**
   * @param {{element: HTMLElement, axis: 'x' | 'y', set: (value: number) => void,
   *   used: () => void}} parts `value` is -1..1; positive is up or left
   */
  constructor({element, axis, set, used}) {
    this.element = element;
    this.axis = axis;
    this.set = set;
    this.used = used;
    this.pointer = -1;
    this.origin = 0;
    element.addEventListener('pointerdown', (event) => this.down(event));
    element.addEventListener('pointermove', (event) => this.move(event));
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      element.addEventListener(end, (event) => this.up(/** @type {PointerEvent} */ (event)));
    }
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (this.pointer !== -1 || event.button > 0) return;
    event.preventDefault();
    if (!capture(this.element, event.pointerId)) return;
    this.pointer = event.pointerId;
    this.origin = this.axis === 'y' ? event.clientY : event.clientX;
    // First, as help goes away then, and the pad takes its room.
    this.used();
    this.place(event);
    this.element.classList.add('held');
  }

  /**
   * Moves the drawn stick under the thumb, but not out of the pad.
   * @param {PointerEvent} event
   */
  place(event) {
    const box = this.element.getBoundingClientRect();
    const half = Math.min(90, box.width / 2, box.height / 2);
    /** @param {number} at @param {number} size @param {number} clear */
    const inside = (at, size, clear) => Math.max(half, Math.min(size - half - clear, at));
    const {style} = this.element;
    style.setProperty('--x', `${inside(event.clientX - box.left, box.width, 0)}px`);
    // Where the pad reaches down to the screen's edge the battery stands there.
    const clear = box.bottom >= innerHeight ? 52 : 30;
    style.setProperty('--y', `${inside(event.clientY - box.top, box.height, clear)}px`);
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (event.pointerId !== this.pointer) return;
    const at = this.axis === 'y' ? event.clientY : event.clientX;
    const way = clamp((this.origin - at) / TRAVEL_PX);
    this.draw(way);
    this.set(stick(way));
  }

  /** @param {PointerEvent} event */
  up(event) {
    if (event.pointerId !== this.pointer) return;
    this.release();
    this.set(0);
  }

  /** Springs back without calling `set`. */
  release() {
    this.pointer = -1;
    this.element.classList.remove('held');
    this.element.style.removeProperty('--x');
    this.element.style.removeProperty('--y');
    this.draw(0);
  }

  /** @param {number} way */
  draw(way) {
    this.element.style.setProperty('--way', String(-way));
  }
}
