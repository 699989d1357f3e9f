// Units of H.264 for the tests of the video paths.

/** @param {string} sps */
const key = (sps) => Uint8Array.from(Buffer.from(
  `00000001${sps}00000168ce0fc80000000165b8000004`, 'hex'));
export const SMALL = key('6742c01eda0280f684000003000400000300f23c58ba80');
export const WIDE = key('6742c01fda014016e840000003004000000f23c60ca8');
export const CUT = key('6742c01e');
/** Recovery point: no IDR slice. */
export const GRADUAL = Uint8Array.from(Buffer.from(
  Buffer.from(SMALL).toString('hex').replace('0165b8', '01419a'), 'hex'));
export const DELTA = Uint8Array.from([0, 0, 0, 1, 0x41, 0x9a, 0x21]);

let sequence = 0;
/** @param {Uint8Array<ArrayBuffer>} unit @param {number} captureUs */
export const frame = (unit, captureUs) => ({
  key: unit !== DELTA, sequence: sequence++, captureUs, unit,
});
