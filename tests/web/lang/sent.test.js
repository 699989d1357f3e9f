// Texts that car and station send, on a page in German.

import assert from 'node:assert/strict';
import {test} from 'node:test';

Object.assign(globalThis, {document: {documentElement: {lang: 'de'}}});
await import('../english.js');
const {asSentence, loadFindings} = await import('../../../web/lang/forms.js');
const {filled, loadSaid, loadTexts, register, said, t, unit} = await import('../../../web/lang/words.js');
const {ask, askJson} = await import('../../../web/lib/http.js');

/** @import {Text} from '../../../web/lib/types.js' */

/** @param {string} key @param {Text['values']} [values] @returns {Text} */
const text = (key, values = {}) => ({key, english: 'in English', values});

test('text is in English until its translation has loaded', async () => {
  const silent = {key: 'camera_silent', english: 'it has sent nothing for {seconds} s', values: {seconds: '2.5'}};
  assert.equal(said(silent), 'it has sent nothing for 2,5 s');
  await loadSaid();
  assert.equal(said(silent), 'sie hat seit 2,5\u00a0s nichts gesendet');
});

test('text may contain another one', async () => {
  await loadSaid();
  const both = text('both', {first: text('camera_silent', {seconds: '2.50'}), second: text('camera_plug')});
  assert.equal(said(both), 'sie hat seit 2,50\u00a0s nichts gesendet; stecke die Kamera ein');
  const newer = text('both', {first: {key: 'newer', english: 'too {how}', values: {how: 'new'}}, second: '{first}'});
  assert.equal(said(newer), 'too new; {first}', 'a value is no template');
});

test('text without a translation is in English, and no text is empty', () => {
  assert.equal(said({key: 'newer', english: 'cannot open {path}: use {a}', values: {path: '/x'}}), 'cannot open /x: use {a}');
  assert.deepEqual([said(null), said(undefined)], ['', '']);
});

/** @param {any} context @param {number} status @param {object} [problem] */
function refusing(context, status, problem) {
  const headers = {'Content-Type': 'application/problem+json', 'X-Opened-By': 'code'};
  context.mock.restoreAll();
  return context.mock.method(globalThis, 'fetch', async () =>
    (problem ? Response.json(problem, {status, headers}) : new Response('502: Bad Gateway', {status})));
}

test('refusal is shown in the page’s language, with its values', async (context) => {
  const range = text('range', {value: '0.05', least: '0.1', most: '2'});
  const fetched = refusing(context, 401, {title: 'in English', text: range});
  await assert.rejects(ask('api/x', {headers: {'X-Drive-Code': 'abc'}}),
    {message: '0,05 wurde abgelehnt: erlaubt sind 0,1 bis 2.', status: 401, locked: true, openedBy: 'code'});
  const [, {headers}] = fetched.mock.calls[0].arguments;
  assert.deepEqual(headers, {Accept: 'application/problem+json, */*', 'X-Drive-Code': 'abc'});
});

test('refusal without a text is shown by its title, and that of a proxy by its number', async (context) => {
  refusing(context, 400, {title: 'fps = "x" refused'});
  await assert.rejects(askJson('api/x'), {message: 'fps = "x" refused'});
  refusing(context, 502);
  await assert.rejects(askJson('api/x'), {message: 'Fehler 502', locked: false, final: false});
});

test('finding is shown in the page’s language', async () => {
  await loadFindings();
  const kinds = /** @type {any} */ (t.findings?.kinds);
  assert.equal(filled(kinds.package.what, {package: 'openssl'}), 'das Paket openssl fehlt');
});

test('part whose file a language lacks is in English', async (context) => {
  context.mock.restoreAll();
  context.mock.method(globalThis, 'fetch', async (/** @type {unknown} */ file) =>
    (String(file).includes('/de/') ? new Response('', {status: 404}) : Response.json({part: 'in English'})));
  await loadTexts('part');
  assert.equal(/** @type {any} */ (t).part, 'in English');
});

test('heading and next step are sentences, commands and names stay', () => {
  for (const [text, shown] of Object.entries({
    'die Firmware drosselt ihn': 'Die Firmware drosselt ihn.', 'l’horloge retarde': 'L’horloge retarde.',
    'zu warm: {a}. Lüfte ihn.': 'Zu warm: {a}. Lüfte ihn.', '请充电（或更换）': '请充电（或更换）。',
    'sudo fpvcar setup, then sudo reboot': 'sudo fpvcar setup, then sudo reboot',
    'fpvcar-wheels läuft nicht (failed)': 'fpvcar-wheels läuft nicht (failed).',
    'gpio=17=ip': 'gpio=17=ip', 'config.txt ist falsch': 'config.txt ist falsch.',
    'siehe docs/install.md': 'Siehe docs/install.md.', 'öffne http://a/': 'Öffne http://a/', '': '',
  })) assert.equal(asSentence(text), shown);
});

test('figure and unit, and dots after a word, are never torn apart', () => {
  assert.equal(unit(1234, 'meter'), '1234\u00a0m');
  register({a: 'Lädt …', b: {c: 'nach {seconds} s, {n} Fahrten'}});
  const {a, b} = /** @type {any} */ (t);
  assert.deepEqual([a, b.c], ['Lädt\u00a0…', 'nach {seconds}\u00a0s, {n} Fahrten']);
});
