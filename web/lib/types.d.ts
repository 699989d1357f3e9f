// The types that pass between the page's modules; for the type checker only.

export * from './messages.js';

/** One frame of /ws/video. */
export interface VideoFrameIn {
  key: boolean; sequence: number; captureUs: number; unit: Uint8Array<ArrayBuffer>;
}
/** The driver's wish, -1..1 each; positive steer is left, as on every wire. */
export interface Wish { throttle: number; steer: number }
/** Commands of keys and gamepad buttons besides driving and stopping. */
export type Command = 'lights' | 'full' | 'keys' | 'snapshot' | 'mark' | 'camera';
/** Called for each picture shown: capture time (car's clock), time on the glass (page's). */
export type Shown = (captureUs: number, shownMs: number) => void;

/** What a WebCodecs path does now. */
export type DecoderState = { kind: 'waiting' } | { kind: 'closed' } | Decoding;
/**
 * `software`: a software decoder was chosen; `proven`: a picture has come out; `gradual`: it
 * started at a recovery point.
 */
export interface Decoding {
  kind: 'decoding'; decoder: VideoDecoder; codec: string; width: number; height: number;
  software: boolean; proven: boolean; gradual: boolean;
}

/** A way from access units to the glass: WebCodecs or Media Source Extensions. */
export interface PicturePath {
  readonly name: 'webcodecs' | 'mse';
  /** A software decoder, as the browser's choice holds pictures. */
  readonly software?: boolean;
  /** Has it started at a recovery point, and has no whole picture yet? */
  readonly gradual: boolean;
  /** Takes one access unit; false if it was dropped. Never throws. */
  push(frame: VideoFrameIn): boolean;
  /** Forgets everything up to the next key frame. */
  reset(): void;
  /** Makes a new decoder, as this one is broken, and waits for the next key frame. */
  rebuild(): void;
  close(): void;
}
