/** The stretch of a drive that the plots show, and the marks of its time axis. Pure. */

/** Nothing shorter is shown: a sensor measures every 20 ms. */
const SPAN_LEAST_S = 0.5;
const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

export class TimeView {
  /** @param {number} seconds of the drive */
  constructor(seconds) {
    this.seconds = seconds;
    this.fromS = 0;
    this.toS = seconds;
  }

  get spanS() {
    return this.toS - this.fromS;
  }

  get whole() {
    return this.spanS >= this.seconds;
  }

  /** Shows this stretch, as far as it is in the drive. @param {number} aS @param {number} bS */
  set(aS, bS) {
    const least = Math.min(SPAN_LEAST_S, this.seconds);
    const span = Math.min(this.seconds, Math.max(least, Math.abs(bS - aS)));
    const middle = (aS + bS) / 2;
    this.fromS = Math.min(Math.max(0, middle - span / 2), this.seconds - span);
    this.toS = this.fromS + span;
  }

  all() {
    this.set(0, this.seconds);
  }

  /**
   * Shows less, or with a factor above 1 more; a moment stays where it is.
   * @param {number} factor @param {number} aroundS
   */
  zoom(factor, aroundS) {
    const least = Math.min(SPAN_LEAST_S, this.seconds);
    const span = Math.min(this.seconds, Math.max(least, this.spanS * factor));
    const fromS = aroundS - (aroundS - this.fromS) * (span / this.spanS);
    this.set(fromS, fromS + span);
  }

  /** @param {number} byS */
  pan(byS) {
    this.set(this.fromS + byS, this.toS + byS);
  }

  /** Goes along with a moment that has left it; true if it moved. @param {number} timeS */
  follow(timeS) {
    if (timeS >= this.fromS && timeS <= this.toS) return false;
    const fromS = timeS - this.spanS / 10;
    this.set(fromS, fromS + this.spanS);
    return true;
  }

  /** Where a moment is: 0 at the left edge, 1 at the right. @param {number} timeS */
  share(timeS) {
    return (timeS - this.fromS) / Math.max(this.spanS, 1e-9);
  }

  /** The moment at a share of the width. @param {number} share */
  at(share) {
    return this.fromS + Math.min(1, Math.max(0, share)) * this.spanS;
  }

  /** Round moments in it. @param {number} most at least 2 */
  ticks(most) {
    const stepS = STEPS_S.find((step) => this.spanS / step <= most) ?? Math.ceil(this.spanS / most / 3600) * 3600;
    const ticks = [];
    for (let count = Math.ceil(this.fromS / stepS - 1e-9); count * stepS <= this.toS + 1e-9; count += 1) {
      ticks.push(count * stepS);
    }
    return {stepS, ticks};
  }
}
