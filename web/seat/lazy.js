/** A part of the page that comes after the first screen, and is asked for until it came. */

const AGAIN_MS = 2000;

export class Later {
  /**
   * @param {{load: (tries: number) => Promise<void>, late: () => void,
   *   after?: (act: () => void, ms: number) => unknown}} parts
   *   `load` brings the part in, or throws; `late`: somebody waits, and it did not come
   */
  constructor({load, late, after = (act, ms) => setTimeout(act, ms)}) {
    this.load = load;
    this.late = late;
    this.after = after;
    this.tries = 0;
    /** @type {'absent' | 'coming' | 'here'} */
    this.is = 'absent';
    /** What somebody wants to do with it. @type {(() => void) | null} */
    this.wish = null;
  }

  /**
   * Does it as soon as it can be done; a second push takes the first back.
   * @param {() => void} act
   */
  push(act) {
    if (this.is === 'here') {
      act();
      return;
    }
    this.wish = this.wish ? null : act;
    void this.fetch();
  }

  async fetch() {
    if (this.is !== 'absent') return;
    this.is = 'coming';
    try {
      await this.load(this.tries);
    } catch (fault) {
      console.warn(`later: ${fault}`);
      this.is = 'absent';
      this.tries += 1;
      if (this.wish) this.late();
      this.after(() => void this.fetch(), AGAIN_MS);
      return;
    }
    this.is = 'here';
    const {wish} = this;
    this.wish = null;
    wish?.();
  }
}
