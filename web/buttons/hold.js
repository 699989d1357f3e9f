/** A link that only a long push follows: grown-ups read how, small children push once. */

export const HOLD_MS = 1000;

export class Hold {
  /**
   * @param {HTMLElement} element has data-held while held
   * @param {() => void} act
   */
  constructor(element, act) {
    this.element = element;
    this.act = act;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    element.addEventListener('pointerdown', () => this.start());
    for (const event of ['pointerup', 'pointercancel', 'pointerleave', 'blur']) {
      element.addEventListener(event, () => this.end());
    }
    element.addEventListener('click', (event) => {
      event.preventDefault();
      if (event.detail === 0) this.act(); // by a key, or a reader's voice
    });
  }

  start() {
    this.end();
    this.element.dataset.held = '';
    this.timer = setTimeout(() => {
      this.end();
      this.act();
    }, HOLD_MS);
  }

  end() {
    clearTimeout(this.timer);
    delete this.element.dataset.held;
  }
}
