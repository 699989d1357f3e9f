/** Panels beside the picture: one at a time, never over STOP, never modal. The open one shows the
 * seat's message card and a request for the wheel, which it would cover. A dialog or sheet over
 * the menu goes back to it. The menu has tabs. */

import {byId, make, setAttr, setText, show} from '../../lib/dom.js';
import {session} from '../../lib/storage.js';

const OVER_MENU = ['unlock', 'keys', 'sheet', 'figures'];

export class Panels {
  /** @param {string[]} ids */
  constructor(ids) {
    this.ids = ids;
    /** @type {HTMLElement | null} */
    this.opener = null;
    /** The menu below the open panel. @type {{top: number, opener: HTMLElement | null} | null} */
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
      ? {top: byId('menu-body').scrollTop, opener: this.opener} : null;
    const active = document.activeElement;
    this.closeAll();
    this.below = menu;
    this.opener = active instanceof HTMLElement ? active : null;
    show(byId(id), true);
    byId(id).append(byId('card'), byId('asking'));
    this.setExpanded(id, true);
    focus?.focus();
  }

  /** @param {string} id */
  close(id) {
    const panel = document.getElementById(id);
    if (!panel || panel.hidden) return;
    const inside = panel.contains(document.activeElement);
    byId('notes').append(byId('card'));
    byId('toasts').before(byId('asking'));
    show(panel, false);
    this.setExpanded(id, false);
    const {below, opener} = this;
    this.below = null;
    if (below) {
      this.open('menu');
      byId('menu-body').scrollTop = below.top;
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

/** The menu's tabs. Arrows, Home and End move among them, as in the ARIA pattern. A pointer leaves
 * the focus to the menu, so that arrows drive. This browser tab remembers the last one. */
export class Tabs {
  constructor() {
    this.tabs = [...byId('tabs').querySelectorAll('button')];
    this.chosen = this.tabs[0];
    this.select(session.get('tab'));
    for (const tab of this.tabs) {
      tab.addEventListener('click', ({detail}) => {
        this.select(tab.id);
        if (detail > 0) byId('menu').focus({preventScroll: true});
      });
    }
    byId('tabs').addEventListener('keydown', (event) => {
      const at = this.tabs.indexOf(this.chosen);
      const to = new Map([['ArrowLeft', at - 1], ['ArrowRight', at + 1], ['Home', 0], ['End', -1]]).get(event.key);
      if (to === undefined) return;
      event.preventDefault();
      this.select(this.tabs.at(to % this.tabs.length)?.id ?? '').focus();
    });
  }

  /** Shows a tab's panel; the first one for an unknown id. @param {string} id @returns {HTMLElement} the tab */
  select(id) {
    this.chosen = this.tabs.find((tab) => tab.id === id) ?? this.tabs[0];
    for (const tab of this.tabs) {
      const on = tab === this.chosen;
      setAttr(tab, 'aria-selected', String(on));
      tab.tabIndex = on ? 0 : -1;
      show(byId(tab.getAttribute('aria-controls') ?? ''), on);
    }
    byId('menu-body').scrollTop = 0;
    session.set('tab', this.chosen.id);
    return this.chosen;
  }
}
