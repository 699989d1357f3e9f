/** Requests of the pages to a car, a station or a gateway. A refusal comes as a problem of RFC 9457
 * with the text for people: pi/fpvcar/http/responses.py. */

import {loadSaid, said} from '../lang/words.js';

/** @typedef {{title?: string, text?: import('./types.js').Text}} Problem */

const PROBLEM = 'application/problem+json';
/** A code opens it, a file is being written, or there were too many requests. */
const RETRYABLE = [401, 409, 429];

/** A refused request; the message is for people. */
export class Refused extends Error {
  /** @param {string} message @param {number} status @param {string | null} openedBy "code" or "password" */
  constructor(message, status, openedBy) {
    super(message);
    this.status = status;
    this.openedBy = openedBy;
  }

  /** Does the request need a code or a password? */
  get locked() {
    return this.status === 401;
  }

  /** Would a retry fail, too? */
  get final() {
    return this.status >= 400 && this.status < 500 && !RETRYABLE.includes(this.status);
  }
}

/**
 * The answer to a request. Throws Refused, or a TypeError without an answer.
 * @param {string} url @param {RequestInit & {headers?: Record<string, string>}} [options]
 */
export async function ask(url, options = {}) {
  const answer = await fetch(url, {...options, headers: {Accept: `${PROBLEM}, */*`, ...options.headers}});
  if (answer.ok) return answer;
  throw new Refused(await problemText(answer), answer.status, answer.headers.get('X-Opened-By'));
}

/**
 * The JSON of an answer; translations of its texts are loaded. Throws as `ask`.
 * @param {string} url @param {RequestInit & {headers?: Record<string, string>}} [options]
 */
export async function askJson(url, options) {
  const body = await (await ask(url, options)).text();
  if (body.includes('"english":')) await loadSaid();
  return JSON.parse(body);
}

/** @param {Response} answer a proxy's has no text for people */
async function problemText(answer) {
  const ours = answer.headers.get('Content-Type')?.startsWith(PROBLEM);
  /** @type {Problem} */
  const {text, title} = ours ? await answer.json() : {};
  await loadSaid();
  const english = title ?? 'error {status}';
  return said(text ?? {key: title ? '' : 'status', english, values: {status: String(answer.status)}});
}
