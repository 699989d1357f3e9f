// The shapes that pass between the page's modules; for the type checker only.

export type Upward =
  | { kind: 'hello'; v: number; client: string; name?: string; code?: string }
  | { kind: 'unlock'; code: string }
  | { kind: 'drive'; seq: number; t: number; seen: number; throttle: number; steer: number }
  | { kind: 'take' } | { kind: 'release' } | { kind: 'estop' } | { kind: 'resume' }
  | { kind: 'lights'; head?: boolean | null }
  | { kind: 'limit'; throttle: number }
  | { kind: 'guard'; mode: string }
  | { kind: 'picture'; to: PictureChange }
  | { kind: 'record'; on: boolean } | { kind: 'keep' } | { kind: 'mark'; text?: string }
  | { kind: 'lock' } | { kind: 'who' } | { kind: 'end'; id: string }
  | { kind: 'ping'; seq: number; t: number }
  | {
      kind: 'report'; path: string; picture_ms?: number | null;
      link_ms?: number | null; fps?: number; dropped?: number;
    };

export interface PictureChange {
  width?: number; height?: number; fps?: number; flip?: string; exposure?: string;
  brightness?: number; night?: boolean;
}
export interface Welcome {
  kind: 'welcome'; v: number; car: string; version: string; clock_us: number;
  silence_ms: number; late_ms: number; drive_every_ms: number; range_stale_ms: number; width: number; height: number;
  fps: number; https_port: number; code_needed: boolean; has_lights: boolean;
  video: string;
}
export interface Battery {
  volts: number | null; amps: number | null; share: number | null; low: boolean;
  age_s?: number | null; state?: string;
}
export interface Range {
  name: string; bearing_deg: number; range_m: number | null; age_s: number | null;
  state: string;
}
export interface Guarding {
  mode: string; stop_m: number; ahead: number; back: number; ahead_by: string;
  back_by: string;
}
export interface Health {
  faults?: string[]; celsius?: number | null; throttled?: number | null;
  wifi_dbm?: number | null; wifi_mbps?: number | null; disk_free_mb?: number | null;
  memory_free_mb?: number | null; load?: number | null; uptime_s?: number | null;
  age_s?: number | null;
}
export interface Recording {
  on: boolean; state: string; seconds: number; free_mb: number | null; kept: number;
  dropped: number; station?: boolean;
}
export interface Stop { cause: string; clears: string; by?: string }
export interface State {
  kind: 'state'; seq: number; clock_us: number; nonce: number; role: 'driver' | 'watching';
  may_drive: boolean; grown_up: boolean; driver: string | null; seat_free: boolean;
  throttle: number; steer: number; reason: string; stop: Stop | null; limit: number;
  head_lights: boolean; viewers: number; battery?: Battery | null; ranges?: Range[];
  wheels?: string; camera?: string; guard?: Guarding | null; health?: Health | null;
  recording?: Recording | null; lost?: number | null;
}
export interface Pong { kind: 'pong'; seq: number; t: number; clock_us: number; nonce: number }
export interface CarError {
  kind: 'error'; code: string; what: string; value?: string; limit?: string; next?: string;
}
/** `left_s`: how long a guest may drive; 0 for others. */
export interface Pass { kind: 'pass'; ticket: string; left_s?: number }
/** One who may drive; `away_s` is 0 while it is here, `left_s` for who is no guest. */
export interface Person {
  id: string; name: string; where: string; grown_up: boolean; drives: boolean;
  you: boolean; away_s?: number; left_s?: number; watches?: boolean;
}
/** `unsaved`: why the car cannot save the list, '' if it can. */
export interface People { kind: 'people'; people: Person[]; unsaved?: string }
export type Downward = Welcome | State | Pong | CarError | Pass | People;

/** Messages of /ws/buttons. Masks have a bit for each button. */
export type ButtonsUp =
  | { kind: 'hello'; v: number }
  | { kind: 'hold'; held: number }
  | { kind: 'choose'; mode: 'free' | 'rainbow' | 'game' };
export interface ButtonLook { name: string; colour: string; shape: string }
export interface ButtonsPanel {
  kind: 'panel'; v: number; car: string; buttons: ButtonLook[];
}
export interface Glow {
  kind: 'glow'; seq: number; lit: number; mode: string; length: number; done: number;
  best: number;
}
export type ButtonsDown = ButtonsPanel | Glow | CarError;

/** One frame of /ws/video. */
export interface VideoFrameIn {
  key: boolean; sequence: number; captureUs: number; unit: Uint8Array<ArrayBuffer>;
}
/** What the driver asks for, -1..1 each; positive steer is left, as on every wire. */
export interface Wish { throttle: number; steer: number }
/** What a key or a gamepad's button asks for besides driving and stopping. */
export type Command = 'lights' | 'full' | 'keys' | 'snapshot' | 'mark';
/** Called for each picture shown: capture time (car's clock), time on the glass (page's). */
export type Shown = (captureUs: number, shownMs: number) => void;

/** What a WebCodecs path does now. */
export type DecoderState = { kind: 'waiting' } | { kind: 'closed' }
  | { kind: 'decoding'; decoder: VideoDecoder; codec: string; width: number; height: number };

/** A way from access units to the glass: WebCodecs or Media Source Extensions. */
export interface PicturePath {
  readonly name: 'webcodecs' | 'mse';
  /** Takes one access unit; false if it was dropped. Never throws. */
  push(frame: VideoFrameIn): boolean;
  /** Forgets everything up to the next key frame. */
  reset(): void;
  /** Makes a new decoder, as this one is broken, and waits for the next key frame. */
  rebuild(): void;
  close(): void;
}
