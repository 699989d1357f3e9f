/** Keeps the screen awake with the browser's means. */

export class Awake {
  /** @param {{playing: () => boolean, changed: (how: 'lock' | 'video' | 'none') => void}} parts */
  constructor({playing, changed}) {
    this.playing = playing;
    this.changed = changed;
    /** @type {WakeLockSentinel | null} */
    this.lock = null;
    this.wanted = false;
    this.asking = false;
    /** @type {'lock' | 'video' | 'none' | ''} */
    this.how = '';
  }

  /** Call it often: it requests the lock only after a change. @param {boolean} used */
  async want(used) {
    this.wanted = used && document.visibilityState === 'visible';
    if (!this.wanted) {
      this.how = '';
      const lock = this.lock;
      this.lock = null;
      await lock?.release();
      return;
    }
    if (this.asking || this.lock?.released === false) return;
    if (this.how === 'video' || this.how === 'none') return;
    this.asking = true;
    const how = await this.ask();
    this.asking = false;
    if (how !== this.how) this.changed(how);
    this.how = how;
  }

  /** @returns {Promise<'lock' | 'video' | 'none'>} */
  async ask() {
    try {
      if ('wakeLock' in navigator) {
        this.lock = await navigator.wakeLock.request('screen');
        return 'lock';
      }
    } catch (fault) {
      // NotAllowedError: low battery, or the user refused.
      if (!(fault instanceof DOMException)) throw fault;
    }
    // The picture itself is a muted inline video on the MSE path: phones stay awake.
    return this.playing() ? 'video' : 'none';
  }
}
