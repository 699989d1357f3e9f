/** Does the picture move? By how much small pictures of it differ. Pure but for `grab`. */

export const WIDTH = 32;
export const HEIGHT = 24;
/** Pictures of the standing car that measure the noise of its camera. */
const STILL_LOOKS = 8;
/** A picture is compared with the one this many pictures earlier. */
const APART = 3;
const LEAST = 1.5;

export class Motion {
  constructor() {
    /** @type {Uint8Array[]} */
    this.last = [];
    /** @type {number[]} */
    this.noise = [];
    this.many = 0;
  }

  /**
   * Compares a picture; `drives`: is a motion wished? True once two pictures in a row differ
   * by more than they did while the car stood.
   * @param {Uint8Array} grey @param {boolean} drives
   */
  look(grey, drives) {
    const before = this.last.length === APART ? this.last.shift() : undefined;
    this.last.push(grey);
    if (!before) return false;
    const by = difference(before, grey);
    if (!drives) {
      this.noise = [...this.noise, by].slice(-STILL_LOOKS);
      this.many = 0;
      return false;
    }
    if (this.noise.length < STILL_LOOKS) return false;
    this.many = by > LEAST + 2 * Math.max(...this.noise) ? this.many + 1 : 0;
    return this.many >= 2;
  }
}

/** Mean difference of two pictures, in levels of grey. @param {Uint8Array} a @param {Uint8Array} b */
export function difference(a, b) {
  let sum = 0;
  for (const [index, level] of a.entries()) sum += Math.abs(level - (b[index] ?? 0));
  return sum / a.length;
}

/** The picture that is shown, small and grey; null before the first. @returns {Uint8Array | null} */
export function grab() {
  const shown = [...document.querySelectorAll('#picture, #picture-mse')].find((element) =>
    element.getBoundingClientRect().width > 0);
  const source = shown instanceof HTMLCanvasElement || shown instanceof HTMLVideoElement ? shown : null;
  const small = document.createElement('canvas');
  Object.assign(small, {width: WIDTH, height: HEIGHT});
  const pen = small.getContext('2d', {willReadFrequently: true});
  if (!source || !pen) return null;
  pen.drawImage(source, 0, 0, WIDTH, HEIGHT);
  const {data} = pen.getImageData(0, 0, WIDTH, HEIGHT);
  return Uint8Array.from({length: WIDTH * HEIGHT}, (_, index) => {
    const at = index * 4;
    return ((data[at] ?? 0) + (data[at + 1] ?? 0) + (data[at + 2] ?? 0)) / 3;
  });
}
