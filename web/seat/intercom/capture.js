/** Audio worklet: the microphone's sound in frames of 16 kHz. The context keeps the device's own
 * rate, as Firefox connects a microphone to no other; each sample is the mean of those it replaces. */

/** @typedef {{port: MessagePort}} Processor */
const scope = /** @type {{AudioWorkletProcessor: new () => Processor, sampleRate: number,
 *   registerProcessor: (name: string, processor: unknown) => void}} */ (
    /** @type {unknown} */ (globalThis));

class Capture extends scope.AudioWorkletProcessor {
  /** @param {{processorOptions: {rateHz: number, samples: number}}} options */
  constructor({processorOptions: {rateHz, samples}}) {
    super();
    this.rateHz = rateHz;
    this.frame = new Float32Array(samples);
    this.heard = false;
    this.filled = this.phase = this.sum = this.count = 0;
  }

  /** True until the microphone is disconnected. @param {Float32Array[][]} inputs */
  process([[channel]]) {
    for (const level of channel ?? []) {
      this.sum += level;
      this.count += 1;
      this.phase += this.rateHz;
      if (this.phase < scope.sampleRate) continue;
      const mean = this.sum / this.count;
      this.sum = this.count = 0;
      for (; this.phase >= scope.sampleRate; this.phase -= scope.sampleRate) this.add(mean);
    }
    this.heard ||= channel !== undefined;
    return channel !== undefined || !this.heard;
  }

  /** @param {number} level */
  add(level) {
    this.frame[this.filled] = level;
    this.filled += 1;
    if (this.filled < this.frame.length) return;
    this.port.postMessage(this.frame.slice());
    this.filled = 0;
  }
}
scope.registerProcessor('capture', Capture);
