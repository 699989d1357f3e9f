// Sentences that the car sends by a key, on a page in German.

import assert from 'node:assert/strict';
import {test} from 'node:test';

Object.assign(globalThis, {document: {documentElement: {lang: 'de'}}});
const {closeText, loadSent, refusalText, asSentence, translated, withTexts} = await import('../../../web/lang/forms.js');
const {register, t, unit} = await import('../../../web/lang/words.js');

/** @param {string} body @param {string} [refusal] */
const refused = (body, refusal) =>
  new Response(`${body}\n`, {status: 409, headers: refusal === undefined ? {} : {'X-Refusal': refusal}});

test('refusal is shown in the page’s language, with its values', async () => {
  const range = refused('0.05 was refused: expected 0.1 to 2.', 'key=range&value=0.05&least=0.1&most=2');
  assert.equal(await refusalText(range), '0,05 wurde abgelehnt: erlaubt sind 0,1 bis 2.');
  const name = refused('a', `${new URLSearchParams({key: 'title', title: 'Öl & {most}', most: '60'})}`);
  assert.equal(await refusalText(name), 'Der Name „Öl & {most}“ wurde abgelehnt: höchstens 60 sichtbare Zeichen.');
});

test('refusal without a translation is shown in English', async () => {
  assert.equal(await refusalText(refused('No space left on device')), 'No space left on device');
  assert.equal(await refusalText(refused('Too new for this page.', 'key=newer')), 'Too new for this page.');
});

test('refusal without words is shown by its number', async () => {
  for (const body of ['', '409: Conflict']) assert.equal(await refusalText(refused(body)), 'Fehler 409');
});

test('finding is shown in the page’s language, an unknown one in English', async () => {
  await loadSent('findings');
  const kinds = /** @type {any} */ (t.findings?.kinds);
  assert.equal(translated(kinds.package, 'what', {package: 'openssl'}, 'x'), 'das Paket openssl fehlt');
  assert.equal(translated(kinds.newer, 'what', {}, 'a new kind'), 'a new kind');
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
  assert.equal(register({a: 'Lädt …', b: {c: 'nach {seconds} s, {n} Fahrten'}}).a, 'Lädt …');
  const {a, b} = /** @type {any} */ (t);
  assert.deepEqual([a, b.c], ['Lädt\u00a0…', 'nach {seconds}\u00a0s, {n} Fahrten']);
});

test('sentences of a message are in the page’s language, also within each other', async () => {
  const english = 'it has sent nothing for 2.5 s; plug the camera in';
  const silent = new URLSearchParams({key: 'camera_silent', seconds: '2.5'});
  const fault = new URLSearchParams({key: 'both', first: `${silent}`, second: 'key=camera_plug'});
  const message = {
    camera: english, ranges: [{name: 'front', state: 'starting', age_s: null}],
    sentences: {starting: 'key=starting', [english]: `${fault}`},
  };
  const shown = await withTexts(message);
  assert.equal(shown.camera, 'sie hat seit 2,5\u00a0s nichts gesendet; stecke die Kamera ein');
  assert.deepEqual(shown.ranges, [{name: 'front', state: 'startet gerade', age_s: null}]);
});

test('sentence without a translation is shown in English', async () => {
  const message = {state: 'too new', other: 'ok', sentences: {'too new': 'key=newer&value=1'}};
  assert.deepEqual(await withTexts(message), message);
  assert.deepEqual(await withTexts({state: 'starting'}), {state: 'starting'});
});

test('reason of a closed socket is in the page’s language, without its second line', async () => {
  assert.equal(await closeText('it is open in another tab\nkey=intercom_elsewhere'), 'sie ist in einem anderen Tab offen');
  assert.equal(await closeText('aplay: no such card\nkey=newer'), 'aplay: no such card');
  assert.equal(await closeText(''), '');
});

test('refusal may contain a sentence', async () => {
  const query = new URLSearchParams({key: 'not_saved', reason: 'key=os_enospc'});
  assert.match(await refusalText(refused('x', `${query}`)), /kein Speicherplatz mehr frei/);
});
