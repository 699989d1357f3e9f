/** Frames of /ws/intercom, and playing them. A frame is 40 ms of mu-law (G.711) at 16 kHz behind
 * the car's clock in us: see pi/fpvcar/wire/intercom.py. */

const RATE_HZ = 16000;
export const SAMPLES = 640;
const HEADER_BYTES = 8;
/** Age of sound that is dropped, and most sound in the queue. */
const LATE_MS = 200;
/** Delay of the first frame, so that the next ones may be late. */
const AHEAD_S = 0.06;
/** G.711's offset of the levels, so that each segment is a power of two. */
const BIAS = 132;

/** The code of a level from -1 to 1. @param {number} level */
export function muLaw(level) {
  const size = Math.min(32635, Math.round(Math.abs(level) * 32768)) + BIAS;
  const segment = 24 - Math.clz32(size);
  return ~((level < 0 ? 0x80 : 0) | (segment << 4) | ((size >> (segment + 3)) & 15)) & 0xff;
}

/** The level of a code. @param {number} code */
export function linear(code) {
  const bits = ~code & 0xff;
  const size = ((((bits & 15) << 3) + BIAS) << ((bits >> 4) & 7)) - BIAS;
  return (bits & 0x80 ? -size : size) / 32768;
}

/** @param {number} clockUs @param {Float32Array} levels */
export function packSound(clockUs, levels) {
  const frame = new Uint8Array(HEADER_BYTES + SAMPLES);
  new DataView(frame.buffer).setBigUint64(0, BigInt(Math.round(clockUs)), true);
  levels.forEach((level, at) => (frame[HEADER_BYTES + at] = muLaw(level)));
  return frame;
}

/** The content of a frame; null for another length. @param {ArrayBuffer} frame */
export function parseSound(frame) {
  if (frame.byteLength !== HEADER_BYTES + SAMPLES) return null;
  const clockUs = Number(new DataView(frame).getBigUint64(0, true));
  return {clockUs, levels: Float32Array.from(new Uint8Array(frame, HEADER_BYTES), linear)};
}

/** Plays frames one behind the other; late ones are dropped. */
export class Player {
  /** @param {AudioContext} context */
  constructor(context) {
    this.context = context;
    this.nextS = 0;
  }

  /** @param {Float32Array<ArrayBuffer>} levels @param {number | null} ageMs */
  play(levels, ageMs) {
    const nowS = this.context.currentTime;
    if (ageMs === null || ageMs > LATE_MS || this.nextS - nowS > LATE_MS / 1000) return;
    if (this.nextS < nowS) this.nextS = nowS + AHEAD_S;
    const buffer = this.context.createBuffer(1, SAMPLES, RATE_HZ);
    buffer.copyToChannel(levels, 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    source.start(this.nextS);
    this.nextS += SAMPLES / RATE_HZ;
  }
}

/**
 * Calls `take` with each 40 ms of the stream's sound, until the returned node is disconnected.
 * @param {AudioContext} context @param {MediaStream} stream
 * @param {(levels: Float32Array) => void} take
 */
export async function capture(context, stream, take) {
  await context.audioWorklet.addModule(new URL('capture.js', import.meta.url));
  const node = new AudioWorkletNode(context, 'capture', {
    numberOfOutputs: 0, processorOptions: {rateHz: RATE_HZ, samples: SAMPLES},
  });
  node.port.onmessage = ({data}) => take(data);
  const source = context.createMediaStreamSource(stream);
  source.connect(node);
  return source;
}
