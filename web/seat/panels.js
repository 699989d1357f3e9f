/** Panels beside the picture: one at a time, never over STOP, never modal. */

import {byId, setAttr, show} from '../lib/dom.js';

export class Panels {
  /** @param {string[]} ids */
  constructor(ids) {
    this.ids = ids;
    /** @type {HTMLElement | null} */
    this.opener = null;
    for (const close of document.querySelectorAll('[data-close]')) {
      const id = /** @type {HTMLElement} */ (close).dataset.close ?? '';
      close.addEventListener('click', () => this.close(id));
    }
  }

  /** @param {string} id */
  isOpen(id) {
    return !byId(id).hidden;
  }

  /** @param {string} id @param {HTMLElement} [focus] */
  open(id, focus) {
    for (const other of this.ids) if (other !== id) this.close(other);
    const active = document.activeElement;
    this.opener = active instanceof HTMLElement ? active : null;
    show(byId(id), true);
    this.setExpanded(id, true);
    focus?.focus();
  }

  /** @param {string} id */
  close(id) {
    const panel = byId(id);
    if (panel.hidden) return;
    const inside = panel.contains(document.activeElement);
    show(panel, false);
    this.setExpanded(id, false);
    if (inside && this.opener?.isConnected) this.opener.focus();
  }

  /** @param {string} id */
  toggle(id) {
    if (this.isOpen(id)) this.close(id);
    else this.open(id);
  }

  closeAll() {
    for (const id of this.ids) this.close(id);
  }

  /** @param {string} id @param {boolean} open */
  setExpanded(id, open) {
    for (const one of document.querySelectorAll(`[aria-controls="${id}"]`)) {
      setAttr(one, 'aria-expanded', String(open));
    }
  }
}
