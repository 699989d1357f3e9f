/**
 * Finds the first picture of a drive from a moment on: a recorder may begin long before
 * its camera does.
 */

import {Refused} from '../../lib/http.js';
import {parseVideo} from '../../lib/wire.js';

/** @import {Drive} from '../types.js' */

/**
 * Time of the first picture, s from the drive's start; null without pictures. Throws if
 * the car does not answer.
 * @param {Drive} drive @param {number} fromS
 * @param {(name: string, fromS: number) => Promise<ArrayBuffer>} thumbnail
 */
export async function firstPictureS(drive, fromS, thumbnail) {
  for (const {name, pictures, startS, endS} of drive.parts) {
    if (!pictures || endS < fromS) continue;
    try {
      const {captureUs} = parseVideo(await thumbnail(name, Math.max(0, fromS - startS)));
      const timeS = (captureUs - drive.startMs * 1000) / 1e6;
      return timeS <= drive.seconds ? Math.max(timeS, 0) : null;
    } catch (fault) {
      if (!(fault instanceof Refused && fault.final)) throw fault;
    }
  }
  return null;
}
