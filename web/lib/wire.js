/** Checks of the messages between page and car. Generated modules, messages.js of each page, have their
 * shapes; tests/vectors/ has examples. */

/** @import {VideoFrameIn} from './types.js' */

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
/** @param {number} low @param {number} high @param {number} [step] @returns {Field} */
export const whole = (low, high, step = 1) => ({
  check: (value) =>
    Number.isInteger(value) && Number(value) >= low && Number(value) <= high && Number(value) % step === 0
      ? null : `a whole number from ${low} to ${high}${step > 1 ? `, a multiple of ${step}` : ''}`,
});
/** @param {number} least @param {number} most @param {RegExp} [pattern] @returns {Field} */
export const text = (least, most, pattern) => ({
  check: (value) => {
    const length = typeof value === 'string' ? [...value].length : -1;
    return length >= least && length <= most && (pattern?.test(String(value)) ?? true)
      ? null : `text of ${least} to ${most} characters${pattern ? ` like ${pattern}` : ''}`;
  },
});
/** @param {...string} values @returns {Field} */
export const oneOf = (...values) => ({
  check: (value) => (values.some((one) => one === value) ? null : values.join(', ')),
});
/** @type {Field} */
export const flag = {check: (value) => (typeof value === 'boolean' ? null : 'true or false')};
/** @param {Field} field @returns {Field} */
export const orNull = (field) => ({
  check: (value) => (value === null ? null : field.check(value)),
});
/** @param {Field} field @returns {Field} */
export const maybe = (field) => ({check: field.check, optional: true});
/** @param {...Field} fields @returns {Field} */
export const either = (...fields) => ({
  check: (value) => {
    const faults = fields.map((field) => field.check(value));
    return faults.includes(null) ? null : faults.join(', or ');
  },
});
/** A value with more fields is good, too. The shape may contain itself. @param {() => Shape} shape @returns {Field} */
export const object = (shape) => ({check: (value) => misfit(value, shape())});
/** @param {() => Shape} shape @returns {Field} */
export const exact = (shape) => ({check: (value) => misfit(value, shape(), true)});
/** @param {Field} field @returns {Field} */
export const list = (field) => ({
  check: (value) => (Array.isArray(value) ? faultIn(value, field) : 'a list'),
});
/** @param {Field} field @returns {Field} */
export const record = (field) => ({
  check: (value) => misfit(value, {}) ?? faultIn(Object.values(/** @type {object} */ (value)), field),
});
export const any = number(-Infinity, Infinity);
/** @type {Field} */
export const anything = {check: () => null};
export const count = whole(0, 2 ** 53 - 1);
export const anyText = text(0, Infinity);

/** @param {unknown[]} values @param {Field} field */
const faultIn = (values, field) =>
  values.map(field.check).find((fault) => fault !== null) ?? null;

/**
 * The fault of a value of this shape, or null.
 * @param {unknown} value @param {Shape} shape @param {boolean} [exact] refuses other fields
 * @returns {string | null}
 */
function misfit(value, shape, exact = false) {
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
  const stranger = exact && Object.keys(fields).find((name) => !Object.hasOwn(shape, name));
  return stranger ? `no ${stranger}, only ${Object.keys(shape).join(', ')}` : null;
}

/**
 * The frame for a message of one of these shapes. Throws WireError if the car would refuse it: a
 * mistake shows here, not as three strikes there.
 * @param {Record<string, Shape>} shapes @param {{kind: string}} message
 */
export function encodeAs(shapes, message) {
  const {kind, ...fields} = message;
  if (!Object.hasOwn(shapes, kind)) throw new WireError('unknown kind', kind, Object.keys(shapes).join(', '));
  const wrong = misfit(fields, shapes[kind], true);
  if (wrong) throw new WireError(`${kind} refused`, JSON.stringify(message), wrong);
  return JSON.stringify(message);
}

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
