/** Every message between page and car, as docs/reference/wire.md has them; fixed by tests/vectors/. */

/** @import {Downward, Upward, VideoFrameIn} from './types.js' */

export const VERSION = 1;
export const HEADER_BYTES = 20;
const KIND_ACCESS_UNIT = 1;
const FLAG_KEY = 1;

/** A refused message: its fault, the value and the expected one. */
export class WireError extends Error {
  /** @param {string} what @param {unknown} [value] @param {string} [limit] */
  constructor(what, value, limit = '') {
    const shown = value === undefined ? '' : String(value).slice(0, 80);
    super(what + (shown && `: ${shown}`) + (limit && ` (expected ${limit})`));
    this.what = what;
    this.value = shown;
    this.limit = limit;
  }
}

/**
 * A field's check: null if the value is good, else the expected value.
 * @typedef {(value: unknown) => string | null} Check
 * @typedef {{check: Check, optional?: boolean}} Field
 * @typedef {Record<string, Field>} Shape
 */

/** @param {number} low @param {number} high @returns {Field} */
export const number = (low, high) => ({
  check: (value) =>
    typeof value === 'number' && value >= low && value <= high
      ? null : `a number from ${low} to ${high}`,
});
/** @param {number} low @param {number} high @returns {Field} */
export const whole = (low, high) => ({
  check: (value) =>
    Number.isInteger(value) && Number(value) >= low && Number(value) <= high
      ? null : `a whole number from ${low} to ${high}`,
});
/** @param {number} most @param {RegExp} [pattern] @returns {Field} */
export const text = (most, pattern) => ({
  check: (value) =>
    typeof value === 'string' && [...value].length <= most &&
      (!pattern || pattern.test(value))
      ? null : `text of at most ${most} characters${pattern ? ` like ${pattern}` : ''}`,
});
/** @type {Field} */
export const flag = {check: (value) => (typeof value === 'boolean' ? null : 'true or false')};
/** @param {Field} field @returns {Field} */
export const orNull = (field) => ({
  check: (value) => (value === null ? null : field.check(value)),
});
/** @param {Field} field @returns {Field} */
export const maybe = (field) => ({check: field.check, optional: true});
/** @param {Shape} shape @returns {Field} */
export const object = (shape) => ({check: (value) => misfit(value, shape)});
/** @param {Shape} shape @returns {Field} */
export const list = (shape) => ({
  check: (value) => {
    if (!Array.isArray(value)) return 'a list';
    for (const item of value) {
      const wrong = misfit(item, shape);
      if (wrong) return wrong;
    }
    return null;
  },
});

export const any = number(-Infinity, Infinity);
const unit = number(-1, 1);
export const count = whole(0, 2 ** 53 - 1);
export const millis = number(0, 1e13);
export const anyText = text(Infinity);
const NOT_PLAIN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
export const PLAIN = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;
/** Text as the car takes it. @param {string} anyText */
export const plain = (anyText) => anyText.replace(NOT_PLAIN, '');

/** Messages of the first screen; other fields are refused. drawer-wire.js has the rest.
 * @type {Record<string, Shape>} */
export const UP = {
  hello: {
    v: whole(VERSION, VERSION), client: text(64, /^[A-Za-z0-9-]{8,}$/),
    name: maybe(text(32, PLAIN)), code: maybe(text(32)),
  },
  drive: {seq: count, t: millis, seen: count, throttle: unit, steer: unit},
  take: {}, release: {}, estop: {}, resume: {},
  lights: {head: maybe(orNull(flag))},
  ping: {seq: count, t: millis},
};

export const known = orNull(any);
const BATTERY = {
  volts: known, amps: known, share: known, low: flag, age_s: maybe(known), state: maybe(anyText),
};
const STOP = {cause: anyText, clears: anyText, by: maybe(anyText)};

/** Messages of the car; more fields pass. @type {Record<string, Shape>} */
export const DOWN = {
  welcome: {
    v: count, car: anyText, version: anyText, clock_us: count, silence_ms: count,
    late_ms: count, drive_every_ms: count, range_stale_ms: count, width: count, height: count, fps: any, https_port: count,
    code_needed: flag, has_lights: flag, video: text(64), named: maybe(flag),
  },
  state: {
    seq: count, clock_us: count, nonce: count, role: anyText, may_drive: flag, grown_up: flag,
    driver: orNull(anyText), seat_free: flag, throttle: any, steer: any, reason: anyText,
    stop: orNull(object(STOP)), limit: any, head_lights: flag, viewers: count,
    battery: maybe(orNull(object(BATTERY))), wheels: maybe(anyText), camera: maybe(anyText),
    health: maybe(orNull(object({}))), recording: maybe(orNull(object({}))),
    lost: maybe(orNull(any)),
  },
  pong: {seq: count, t: any, clock_us: count, nonce: count},
  pass: {ticket: anyText, left_s: maybe(any)},
  error: {code: anyText, what: anyText, value: maybe(anyText), limit: maybe(anyText), next: maybe(anyText)},
};

/**
 * The fault of a value of this shape, or null.
 * @param {unknown} value @param {Shape} shape @returns {string | null}
 */
function misfit(value, shape) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'an object';
  }
  const fields = /** @type {Record<string, unknown>} */ (value);
  for (const [name, field] of Object.entries(shape)) {
    if (fields[name] === undefined) {
      if (field.optional) continue;
      return `${name}, which is missing`;
    }
    const wrong = field.check(fields[name]);
    if (wrong) return `${name}: ${wrong}, not ${JSON.stringify(fields[name])}`;
  }
  return null;
}

/**
 * The text frame of a message to the car. Throws WireError if the car would
 * refuse it: a mistake shows here, not as three strikes there.
 * @param {Upward} message
 */
export const encode = (message) => encodeAs(UP, message);

/**
 * The frame for a message of one of these shapes. Throws WireError.
 * @param {Record<string, Shape>} shapes @param {{kind: string}} message
 */
export function encodeAs(shapes, message) {
  const shape = Object.hasOwn(shapes, message.kind) ? shapes[message.kind] : null;
  if (!shape) throw new WireError('unknown kind', message.kind, Object.keys(shapes).join(', '));
  const wrong = misfit(message, shape);
  if (wrong) throw new WireError(`${message.kind} refused`, JSON.stringify(message), wrong);
  const stranger = Object.keys(message).find((name) => name !== 'kind' && !shape[name]);
  if (stranger) throw new WireError('unknown field', stranger, Object.keys(shape).join(', '));
  return JSON.stringify(message);
}

/**
 * The message in a frame of /ws/drive; null for an unknown kind, a newer car's.
 * Throws WireError if malformed or mistyped.
 * @param {string} frame
 * @returns {Downward | null}
 */
export const parseDown = (frame) =>
  /** @type {Downward | null} */ (parseAs(DOWN, frame));

/**
 * The message in a frame, of one of these shapes; null for an unknown kind. Throws
 * WireError.
 * @param {Record<string, Shape>} shapes @param {string} frame
 */
export function parseAs(shapes, frame) {
  /** @type {unknown} */
  let message;
  try {
    message = JSON.parse(frame);
  } catch {
    throw new WireError('not JSON', frame);
  }
  const wrong = misfit(message, {kind: anyText});
  if (wrong) throw new WireError('message refused', frame, wrong);
  const kind = /** @type {{kind: string}} */ (message).kind;
  if (!Object.hasOwn(shapes, kind)) return null;
  const fault = misfit(message, shapes[kind]);
  if (fault) throw new WireError(`${kind} refused`, frame, fault);
  return message;
}

/**
 * The header and access unit of one frame of /ws/video; `unit` is a view, no copy.
 * Capture time is the car's CLOCK_MONOTONIC in us: exact to 2^53, which is 285 years.
 * @param {ArrayBuffer} frame
 * @returns {VideoFrameIn}
 */
export function parseVideo(frame) {
  if (frame.byteLength < HEADER_BYTES) {
    throw new WireError('video frame cut', frame.byteLength, `>= ${HEADER_BYTES} bytes`);
  }
  const view = new DataView(frame);
  const [version, kind] = [view.getUint8(0), view.getUint8(1)];
  if (version !== VERSION) throw new WireError('wrong version', version, `${VERSION}`);
  if (kind !== KIND_ACCESS_UNIT) throw new WireError('unknown video kind', kind, '1');
  const length = view.getUint32(16, true);
  const left = frame.byteLength - HEADER_BYTES;
  if (length !== left) throw new WireError('video frame length', length, `${left} bytes`);
  const captureUs = view.getUint32(8, true) + view.getUint32(12, true) * 2 ** 32;
  if (!Number.isSafeInteger(captureUs)) {
    throw new WireError('video capture time', captureUs, 'less than 2^53 us');
  }
  return {
    key: (view.getUint8(2) & FLAG_KEY) !== 0,
    sequence: view.getUint32(4, true),
    captureUs,
    unit: new Uint8Array(frame, HEADER_BYTES),
  };
}
