/** Panels beside the picture: one at a time, never over STOP, never modal. The open one shows the
 * seat's message card, which it would cover. A dialog or sheet over the menu goes back to it. */

import {byId, make, setAttr, setText, show} from '../../lib/dom.js';

const OVER_MENU = ['unlock', 'sheet'];

/** The part in the middle, and its place: parts above grow with a code. @param {HTMLElement} body */
function middle({children, scrollTop, clientHeight}) {
  const parts = /** @type {HTMLElement[]} */ ([...children]);
  const part = parts.filter(({offsetTop}) => offsetTop <= scrollTop + clientHeight / 2).pop() ?? parts[0];
  return {part, top: part.offsetTop - scrollTop};
}

export class Panels {
  /** @param {string[]} ids */
  constructor(ids) {
    this.ids = ids;
    /** @type {HTMLElement | null} */
    this.opener = null;
    /** The menu below the open panel. @type {ReturnType<typeof middle> & {opener: HTMLElement | null} | null} */
    this.below = null;
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
    const menu = OVER_MENU.includes(id) && this.isOpen('menu')
      ? {...middle(byId('menu-body')), opener: this.opener} : null;
    const active = document.activeElement;
    this.closeAll();
    this.below = menu;
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
    const {below, opener} = this;
    this.below = null;
    if (below) {
      this.open('menu');
      byId('menu-body').scrollTop = below.part.offsetTop - below.top;
      this.opener = below.opener;
    }
    if (!inside) return;
    if (opener?.isConnected) opener.focus({preventScroll: true});
    // A code hides the button that asked for it.
    if (below && document.activeElement !== opener) byId('menu').focus({preventScroll: true});
  }

  /** Opens an empty sheet; returns the place for its content. @param {string} title @param {string} id */
  sheet(title, id) {
    const heading = byId('sheet-title');
    const place = make('div', '');
    place.id = id;
    setText(heading, title);
    byId('sheet-body').replaceChildren(place);
    this.open('sheet', heading);
    return place;
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
    this.below = null;
    for (const id of this.ids) this.close(id);
  }

  /** @param {string} id @param {boolean} open */
  setExpanded(id, open) {
    for (const control of document.querySelectorAll(`[aria-controls="${id}"]`)) {
      setAttr(control, 'aria-expanded', String(open));
    }
  }
}
