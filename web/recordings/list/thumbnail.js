/** Thumbnails of lists: the picture of one key frame each. */

import {parseVideo} from '../../lib/wire.js';
import {fragment, initSegment} from '../../video/fmp4.js';
import {readKeyFrame} from '../../video/h264.js';
import {mediaSourceClass} from '../../video/mse.js';
import {supports} from '../../video/support.js';

const WAIT_MS = 4000;

export class Thumbnails {
  /** @param {(name: string, fromS: number) => Promise<ArrayBuffer>} fetch */
  constructor(fetch) {
    this.fetch = fetch;
    /**
     * Thumbnails are drawn one after the other: the car has other work.
     * @type {Promise<void>}
     */
    this.drawing = Promise.resolve();
    this.sight = new IntersectionObserver((entries) => {
      for (const {isIntersecting, target} of entries) {
        if (!isIntersecting) continue;
        this.sight.unobserve(target);
        this.drawing = this.drawing.then(() =>
          this.draw(/** @type {HTMLCanvasElement} */ (target)));
      }
    });
  }

  /**
   * A canvas that gets its thumbnail when it comes into view.
   * @param {string} name @param {number} fromS s from the start of the file
   * @param {boolean} drawn false: it stays black
   */
  canvas(name, fromS, drawn) {
    const canvas = document.createElement('canvas');
    canvas.dataset.name = name;
    canvas.dataset.from = String(fromS);
    canvas.setAttribute('aria-hidden', 'true');
    [canvas.width, canvas.height] = [160, 120];
    if (drawn) this.sight.observe(canvas);
    return canvas;
  }

  /** @param {HTMLCanvasElement} canvas */
  async draw(canvas) {
    try {
      const {name = '', from} = canvas.dataset;
      const bytes = await this.fetch(name, Number(from));
      await drawThumbnail(parseVideo(bytes).unit, canvas);
      canvas.dataset.drawn = 'yes';
    } catch (fault) {
      console.debug(`recordings: no picture of ${canvas.dataset.name}: ${fault}`);
    }
  }
}

/**
 * Draws a key frame. Throws if this browser cannot.
 * @param {Uint8Array<ArrayBuffer>} unit @param {HTMLCanvasElement} canvas
 */
export async function drawThumbnail(unit, canvas) {
  const key = readKeyFrame(unit);
  if (!key) throw new Error('a key frame without parameter sets');
  canvas.width = key.width;
  canvas.height = key.height;
  const context = canvas.getContext('2d', {alpha: false});
  if (!context) throw new Error('this browser gives no 2d canvas');
  if (supports.webcodecs()) await byWebCodecs(unit, key.codec, context);
  else await byMse(unit, key, context);
}

/**
 * @param {Uint8Array<ArrayBuffer>} unit @param {string} codec
 * @param {CanvasRenderingContext2D} context
 */
async function byWebCodecs(unit, codec, context) {
  /** @type {string | null} */
  let fault = 'the decoder gives no picture';
  const decoder = new VideoDecoder({
    output: (picture) => {
      fault = null;
      context.drawImage(picture, 0, 0);
      picture.close();
    },
    error: (error) => {
      fault = error.message;
    },
  });
  decoder.configure({codec});
  decoder.decode(new EncodedVideoChunk({type: 'key', timestamp: 0, data: unit}));
  await decoder.flush();
  if (decoder.state !== 'closed') decoder.close();
  if (fault) throw new Error(fault);
}

/**
 * @param {Uint8Array<ArrayBuffer>} unit
 * @param {NonNullable<ReturnType<typeof readKeyFrame>>} key
 * @param {CanvasRenderingContext2D} context
 */
async function byMse(unit, key, context) {
  const Source = mediaSourceClass();
  if (!Source) throw new Error('this browser has no MediaSource');
  const video = document.createElement('video');
  video.muted = true;
  video.disableRemotePlayback = true;
  const source = new Source();
  const url = URL.createObjectURL(source);
  try {
    video.src = url;
    await happened(source, 'sourceopen');
    const buffer = source.addSourceBuffer(`video/mp4; codecs="${key.codec}"`);
    const drawable = happened(video, 'loadeddata');
    for (const bytes of [initSegment(key), fragment({unit, key: true}, 1, 0, 100_000)]) {
      buffer.appendBuffer(bytes);
      await happened(buffer, 'updateend');
    }
    source.endOfStream();
    await drawable;
    context.drawImage(video, 0, 0);
  } finally {
    URL.revokeObjectURL(url);
    video.removeAttribute('src');
  }
}

/**
 * Waits for an event.
 * @param {EventTarget} target @param {string} name @returns {Promise<void>}
 */
function happened(target, name) {
  return new Promise((resolve, reject) => {
    target.addEventListener(name, () => resolve(), {once: true});
    target.addEventListener('error', () => reject(new Error(`no ${name}`)), {once: true});
    setTimeout(() => reject(new Error(`no ${name} within ${WAIT_MS} ms`)), WAIT_MS);
  });
}
