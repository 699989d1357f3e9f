/** Panels beside the picture: one at a time, never over STOP, never modal. The open one shows the
 * seat's message card, which it would cover. */

import {byId, setAttr, show} from '../../lib/dom.js';

export class Panels {
  /** @param {string[]} ids */
  constructor(ids) {
    this.ids = ids;
    /** @type {HTMLElement | null} */
    this.opener = null;
    // Also for panels that are still to come.
    document.addEventListener('click', ({target}) => {
      const close = target instanceof Element ? target.closest('[data-close]') : null;
      if (close instanceof HTMLElement) this.close(close.dataset.close ?? '');
    });
  }

  /** @param {string} id */
  isOpen(id) {
    return document.getElementById(id)?.hidden === false;
  }

  /** @param {string} id @param {HTMLElement} [focus] */
  open(id, focus) {
    for (const panelId of this.ids) if (panelId !== id) this.close(panelId);
    const active = document.activeElement;
    this.opener = active instanceof HTMLElement ? active : null;
    show(byId(id), true);
    byId(id).append(byId('card'));
    this.setExpanded(id, true);
    focus?.focus();
  }

  /** @param {string} id */
  close(id) {
    const panel = document.getElementById(id);
    if (!panel || panel.hidden) return;
    const inside = panel.contains(document.activeElement);
    byId('notes').append(byId('card'));
    show(panel, false);
    this.setExpanded(id, false);
    if (inside && this.opener?.isConnected) this.opener.focus();
  }

  /** @param {string} id */
  toggle(id) {
    if (this.isOpen(id)) this.close(id);
    else this.open(id);
  }

  /** Closes the panel that is open; returns whether one was. */
  closeTop() {
    const open = this.ids.find((id) => this.isOpen(id));
    if (open) this.close(open);
    return open !== undefined;
  }

  closeAll() {
    for (const id of this.ids) this.close(id);
  }

  /** @param {string} id @param {boolean} open */
  setExpanded(id, open) {
    for (const control of document.querySelectorAll(`[aria-controls="${id}"]`)) {
      setAttr(control, 'aria-expanded', String(open));
    }
  }
}
