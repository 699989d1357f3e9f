/** A part of the page that loads after the first screen. */

const AGAIN_MS = 2000;
const TRIES = 10;

/** @template T */
export class LazyPart {
  /**
   * @param {{load: (tries: number) => Promise<T>, use: (loaded: T) => void,
   *   late: () => void, broken?: () => void, after?: (act: () => void, ms: number) => unknown}} parts
   *   `load` fetches the part, or throws, and changes nothing else; `use` builds it, once.
   *   `late`: loading failed with a request pending; `broken`: building failed with one pending
   */
  constructor({load, use, late, broken = () => {}, after = (act, ms) => setTimeout(act, ms)}) {
    this.load = load;
    this.use = use;
    this.late = late;
    this.broken = broken;
    this.after = after;
    this.tries = 0;
    /** @type {'absent' | 'loading' | 'broken' | 'loaded'} */
    this.state = 'absent';
    /** Action to run once loaded. @type {(() => void) | null} */
    this.pending = null;
  }

  /**
   * Does `act` as soon as the part is loaded; a second push takes the first back.
   * @param {() => void} act
   */
  push(act) {
    if (this.state === 'loaded') act();
    else if (this.state === 'broken') this.broken();
    else {
      this.pending = this.pending ? null : act;
      void this.fetch();
    }
  }

  /** Loads and builds the part; retries some times, ever more seldom. */
  async fetch() {
    if (this.state !== 'absent') return;
    this.state = 'loading';
    let loaded;
    try {
      loaded = await this.load(this.tries);
    } catch (fault) {
      console.warn(`lazy: ${fault}`);
      this.state = 'absent';
      this.failed();
      return;
    }
    this.state = 'broken';
    this.use(loaded);
    this.state = 'loaded';
    this.pending?.();
    this.pending = null;
  }

  failed() {
    this.tries += 1;
    if (this.pending) this.late();
    const {tries} = this;
    // After the last try a push asks again.
    if (tries >= TRIES) this.pending = null;
    // A push may have started another try, with its own retry.
    else this.after(() => (this.tries === tries ? void this.fetch() : undefined), AGAIN_MS * tries);
  }
}
