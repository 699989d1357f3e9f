/** Fingers, mouse and keys on big buttons: which is on which. A finger may slide. */

import {capture, codeOf} from '../lib/dom.js';

export class Fingers {
  /**
   * `moved`: this pointer or key is on this button now, -1: no button. `tapped`: a screen
   * reader pushed a button. `released`: the page lost the focus.
   * @param {{stage: HTMLElement, moved: (who: string, button: number) => void,
   *   tapped: (button: number) => void, released: () => void}} parts
   */
  constructor({stage, moved, tapped, released}) {
    this.stage = stage;
    this.moved = moved;
    stage.addEventListener('pointerdown', (event) => this.down(event));
    stage.addEventListener('pointermove', (event) => {
      if (stage.hasPointerCapture(event.pointerId)) this.at(event);
    });
    for (const end of /** @type {const} */ (['pointerup', 'pointercancel', 'lostpointercapture'])) {
      stage.addEventListener(end, ({pointerId}) => moved(`pointer ${pointerId}`, -1));
    }
    // Fingers and keys have pushed already; this click comes from a screen reader.
    stage.addEventListener('click', ({target, detail}) => {
      if (detail === 0) tapped(buttonOf(target));
    });
    addEventListener('keydown', (event) => this.key(event));
    addEventListener('keyup', (event) => {
      if (codeOf(event) === 'Space' && buttonOf(event.target) >= 0) event.preventDefault();
      moved(`key ${codeOf(event)}`, -1);
    });
    addEventListener('blur', released);
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button > 0) return;
    event.preventDefault();
    if (capture(this.stage, event.pointerId)) this.at(event);
  }

  /** @param {PointerEvent} event */
  at({pointerId, clientX, clientY}) {
    this.moved(`pointer ${pointerId}`, buttonOf(document.elementFromPoint(clientX, clientY)));
  }

  /** 1 to 6, or Space and Enter on the focused button. @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const code = codeOf(event);
    const [, digit] = /^(?:Digit|Numpad)([1-6])$/.exec(code) ?? [];
    const pushes = code === 'Space' || code === 'Enter';
    const focused = pushes ? buttonOf(document.activeElement) : -1;
    const button = digit ? Number(digit) - 1 : focused;
    if (button < 0) return;
    event.preventDefault();
    if (!event.repeat) this.moved(`key ${code}`, button);
  }
}

/**
 * The button in this place of the stage, or -1; its corners count, too.
 * @param {EventTarget | null} target
 */
function buttonOf(target) {
  const cell = target instanceof Element ? target.closest('[data-button]') : null;
  return cell instanceof HTMLElement ? Number(cell.dataset.button) : -1;
}
