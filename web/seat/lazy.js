/** A part of the page that loads after the first screen, and tries until it is here. */

const AGAIN_MS = 2000;

export class LazyPart {
  /**
   * @param {{load: (tries: number) => Promise<void>, late: () => void,
   *   after?: (act: () => void, ms: number) => unknown}} parts
   *   `load` loads the part, or throws; `late`: somebody waits, and loading failed
   */
  constructor({load, late, after = (act, ms) => setTimeout(act, ms)}) {
    this.load = load;
    this.late = late;
    this.after = after;
    this.tries = 0;
    /** @type {'absent' | 'loading' | 'loaded'} */
    this.state = 'absent';
    /** What to do once it is loaded. @type {(() => void) | null} */
    this.pending = null;
  }

  /**
   * Does `act` as soon as the part is loaded; a second push takes the first back.
   * @param {() => void} act
   */
  push(act) {
    if (this.state === 'loaded') {
      act();
      return;
    }
    this.pending = this.pending ? null : act;
    void this.fetch();
  }

  async fetch() {
    if (this.state !== 'absent') return;
    this.state = 'loading';
    try {
      await this.load(this.tries);
    } catch (fault) {
      console.warn(`lazy: ${fault}`);
      this.state = 'absent';
      this.tries += 1;
      if (this.pending) this.late();
      this.after(() => void this.fetch(), AGAIN_MS);
      return;
    }
    this.state = 'loaded';
    const {pending} = this;
    this.pending = null;
    pending?.();
  }
}
