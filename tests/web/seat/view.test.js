// The page's situation, its strings, its sparklines, its arcs.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {textOf} from '../english.js';
import {median} from '../../../web/lib/median.js';
import {Page} from '../../../web/seat/view.js';
import {arc, isFresh, nearness, setStale} from '../../../web/seat/hud/ranges.js';
import {sparkline} from '../../../web/seat/link/sparkline.js';
import {aged, canMove, gradeOf, situationOf, takenBy} from '../../../web/seat/state.js';
import {STRINGS, sentence} from '../../../web/seat/strings.js';
import {parse} from '../../../web/seat/messages.js';
import {DRAWER_STRINGS} from '../../../web/seat/drawer/drawer-strings.js';
import {Unlock} from '../../../web/seat/drawer/unlock.js';

const {good} = JSON.parse(
  readFileSync(new URL('../../vectors/drive_down.json', import.meta.url), 'utf8'));
const welcome = good[0].fields;
const driving = good[1].fields;
const watching = {...driving, role: 'watching', driver: 'Ann'};

/** @param {Record<string, unknown>} more */
const page = (more) => /** @type {import('../../../web/seat/types.js').Page} */ ({
  link: {kind: 'up', heardMs: 0}, welcome, state: driving, lostMs: 0, lateMs: null, takenBy: null,
  pictureOld: false, wishing: true, pushedStop: false, stopWaits: false, linkFault: '', ...more,
});
/** @param {Record<string, unknown>} more */
const kind = (more) => situationOf(page(more)).kind;

test('page shows one situation at a time, the worst first', () => {
  assert.equal(kind({}), 'driving');
  assert.equal(kind({wishing: false}), 'ready');
  assert.equal(kind({welcome: null}), 'connecting');
  assert.equal(kind({state: null}), 'connecting');
  assert.equal(kind({link: {kind: 'probing'}}), 'lost');
  assert.equal(kind({link: {kind: 'opening'}, pictureOld: true}), 'lost');
  assert.equal(kind({link: {kind: 'parked', why: ''}, state: null}), 'parked');
  assert.equal(kind({pictureOld: true}), 'camera');
  assert.equal(kind({state: {...driving, camera: textOf('gone')}}), 'camera');
  assert.equal(kind({state: {...driving, wheels: textOf('hung'), camera: textOf('gone')}}), 'wheels');
  assert.match(sentence({kind: 'wheels', words: 'enable I2C'})?.text ?? '', /: enable I2C\. /);
  assert.equal(kind({state: watching}), 'watching');
  assert.equal(kind({state: watching, takenBy: 'Ann'}), 'taken');
  assert.equal(kind({state: {...watching, may_drive: false}}), 'locked');
  assert.equal(kind({state: {...driving, stop: {cause: 'silence', clears: 'neutral'}},
    pictureOld: true}), 'stopped');
});

test('card names the part of the way that fails, before and after the first link', () => {
  Object.assign(globalThis, {location: {hostname: 'car.local'}});
  const words = (/** @type {Record<string, unknown>} */ more) => sentence(situationOf(page(more)));
  const link = {kind: 'probing'};
  assert.match(words({state: null})?.text ?? '', /^Looking for the car\./);
  const refused = words({state: null, linkFault: 'secure'});
  assert.deepEqual([refused?.tone, refused?.title], ['warn', 'No live link']);
  assert.match(refused?.text ?? '', /over https, .* http:\/\/car\.local,/);
  assert.match(words({link, linkFault: 'secure'})?.text ?? '', /^The car stops by itself\. The car answers, but/);
  assert.match(words({link, linkFault: 'socket', state: watching})?.text ?? '', /WebSockets.* STOP will be sent/);
  assert.match(words({state: null, stopWaits: true, linkFault: 'status'})?.text ?? '', /^The car has not answered your STOP.*proxy/);
});

test('fault that keeps the picture away is put in words', () => {
  assert.equal(STRINGS.noPicture({trouble: '', fault: 'old news'}), '');
  assert.match(STRINGS.noPicture({trouble: 'tap', fault: ''}), /^Tap/);
  assert.match(STRINGS.noPicture({trouble: 'unsupported', fault: ''}), /newer/);
  assert.match(STRINGS.noPicture({trouble: 'decoder', fault: 'no 4:2:2'}), /\(no 4:2:2\)/);
});

test('late link is shown with its delay, and that the car waits', () => {
  const late = page({lateMs: 1540});
  assert.deepEqual(situationOf(late), {kind: 'late', ms: 1540, limitMs: 300});
  assert.match(sentence(situationOf(late))?.text ?? '', /^The link is 1\.5s late: the car waits\. It drives below 300\u00a0ms\./);
  assert.match(sentence(situationOf(page({lateMs: 340})))?.text ?? '', /^The link is 340\u00a0ms late/);
  const stopped = (/** @type {string} */ cause) =>
    kind({lateMs: 500, state: {...driving, stop: {cause, clears: 'resume', by: ''}}});
  assert.equal(stopped('silence'), 'late');
  assert.equal(stopped('handover'), 'late');
  assert.equal(stopped('estop'), 'stopped', 'what a push clears comes first');
  assert.equal(kind({lateMs: 500, state: watching}), 'watching');
});

test('only an unstopped driver can move the car', () => {
  /** @param {Record<string, unknown>} more */
  const can = (more, atWheel = true) => canMove(situationOf(page(more)), atWheel);
  const estop = {cause: 'estop', clears: 'resume', by: ''};
  const low = {...driving.battery, low: true};
  for (const more of [{}, {wishing: false}, {pictureOld: true}, {state: {...driving, battery: low}}]) {
    assert.equal(can(more), true, JSON.stringify(more));
  }
  for (const more of [{state: {...driving, stop: estop}}, {state: {...driving, wheels: textOf('hung')}}, {lateMs: 500}]) {
    assert.equal(can(more), false, JSON.stringify(more));
  }
  assert.equal(can({link: {kind: 'probing'}}, false), false);
  assert.equal(can({state: watching}, false), false);
  assert.equal(can({state: watching, pictureOld: true}, false), false, 'the camera is shown to watchers, too');
  assert.equal(can({state: null}), false);
});

test('handover is no alarm, but asks to let go first', () => {
  const state = {...driving, stop: {cause: 'handover', clears: 'neutral', by: ''}};
  assert.deepEqual(situationOf(page({state})), {kind: 'ready', letGo: true});
  assert.deepEqual(situationOf(page({state, wishing: false})), {kind: 'ready', letGo: false});
});

test('low battery is shown to the driver, below more urgent situations', () => {
  const state = {...driving, battery: {...driving.battery, low: true}};
  const low = {...state, stop: {cause: 'handover', clears: 'neutral', by: ''}};
  assert.deepEqual(situationOf(page({state})), {kind: 'battery', wishing: true});
  assert.deepEqual(situationOf(page({state: low, wishing: false})), {kind: 'battery', wishing: false});
  assert.equal(kind({state: low}), 'ready', 'let go first');
  assert.equal(kind({state: {...state, reason: 'limited'}}), 'driving');
  assert.equal(kind({state: {...state, role: 'watching'}}), 'watching');
  assert.equal(kind({state, pictureOld: true}), 'camera');
  assert.match(sentence(situationOf(page({state})))?.text ?? '', /charge it/);
});

test('hung encoder is shown while the driver rests, and does not stop the car', () => {
  const state = {...driving, encoder_hangs: true};
  assert.equal(kind({state, wishing: false}), 'encoder');
  assert.equal(canMove(situationOf(page({state, wishing: false})), true), true);
  assert.match(sentence({kind: 'encoder'})?.text ?? '', /off and on again/);
  assert.equal(kind({state}), 'driving');
  assert.equal(kind({state: {...state, role: 'watching'}}), 'watching');
  assert.equal(kind({state: {...state, camera: textOf('gone')}, wishing: false}), 'camera');
});

test('coding that some pages cannot show is named at rest, and where the picture is missing', () => {
  const words = 'its H.264 has 4:2:2 samples';
  const state = {...driving, camera_warning: textOf(words)};
  assert.deepEqual(situationOf(page({state, wishing: false})), {kind: 'coding', words});
  assert.equal(canMove(situationOf(page({state, wishing: false})), true), true);
  assert.match(sentence({kind: 'coding', words})?.text ?? '', /The camera: its H.264 has 4:2:2/);
  assert.equal(kind({state}), 'driving');
  assert.deepEqual(situationOf(page({state, pictureOld: true})), {kind: 'camera', words});
});

test('page without a link states only what it knows of the car', () => {
  const link = {kind: 'probing'};
  /** @param {Record<string, unknown>} more */
  const says = (more) => {
    const words = sentence(situationOf(page({link, ...more})));
    return `${words?.title}. ${words?.text}`;
  };
  assert.match(says({}), /The car stops by itself/);
  assert.doesNotMatch(says({state: watching}), /stops/);
  assert.match(says({state: watching}), /the car keeps driving.*STOP will be sent as soon as/);
  for (const more of [{}, {state: watching}, {state: null}]) {
    assert.doesNotMatch(says(more), /STOP not sent/);
    assert.match(says({...more, stopWaits: true}), /STOP not sent yet.*has not answered your STOP yet.*as soon as/);
  }
});

test('measurements age and become invalid when the link is lost', () => {
  const old = aged(driving, 3, 'no link');
  assert.deepEqual(old.battery, {...driving.battery, age_s: 3.04, state: {key: '', english: 'no link', values: {}}});
  assert.deepEqual(old.ranges?.map(({range_m, age_s, state}) => [range_m, age_s, state]),
    [[0.42, 3.01, old.battery?.state], [null, 3, old.battery?.state]]);
  assert.ok(driving.ranges.some(isFresh) && !old.ranges?.some(isFresh));
  assert.equal(old.guard, null, 'it does not guard any more');
  assert.equal(aged({...driving, battery: undefined, ranges: undefined}, 1, '').battery, null);
});

test('right to resume depends on role and stop', () => {
  /** @param {Record<string, unknown>} state @param {string} clears */
  const may = (state, clears) => {
    const it = situationOf(page({state: {...state, stop: {cause: 'estop', clears, by: ''}}}));
    return it.kind === 'stopped' && it.mayResume;
  };
  assert.equal(may(driving, 'resume'), true);
  assert.equal(may(watching, 'resume'), false);
  assert.equal(may({...watching, grown_up: true}, 'resume'), true);
  assert.equal(may(driving, 'grown_up'), false);
  assert.equal(may({...driving, grown_up: true}, 'grown_up'), true);
  assert.equal(may(driving, 'neutral'), false);
});

test('stop by somebody who has left leads on to Resume', () => {
  /** @param {Record<string, unknown>} state @param {string} clears */
  const way = (state, clears) => {
    const it = situationOf(page({state: {...state, stop: {cause: 'estop', clears, by: 'Ann'}}}));
    return it.kind === 'stopped' ? [it.leads, it.mayResume, sentence(it)?.text] : [];
  };
  const left = {...watching, driver: null, seat_free: true};
  const locked = {...left, may_drive: false};
  const by = 'Ann pressed STOP.';
  assert.deepEqual(way(locked, 'resume'), ['code', false, `${by} No one is driving. Enter the code, then take the wheel.`]);
  assert.deepEqual(way(left, 'resume'), ['take', false, `${by} No one is driving. Take the wheel to go on.`]);
  assert.deepEqual(way(locked, 'neutral').slice(0, 2), ['code', false]);
  assert.deepEqual(way(left, 'neutral').slice(0, 2), ['take', false]);
  assert.deepEqual(way({...left, grown_up: true}, 'resume').slice(0, 2), [null, true]);
  const driven = {...locked, driver: 'Ann', seat_free: false};
  assert.deepEqual(way(driven, 'resume'), [null, false, `${by} Only the driver can resume.`]);
  assert.deepEqual(way(driving, 'resume').slice(0, 2), [null, true]);
  for (const state of [locked, driven, driving]) {
    assert.deepEqual(way(state, 'grown_up'), ['code', false, `${by} A grown-up has to press “Resume”.`]);
  }
  assert.equal(way(left, 'grown_up')[0], null);
});

test('situations have a sentence; stops give cause and next step', () => {
  const causes = ['silence', 'blind', 'estop', 'estop_grown_up', 'wheels_lost',
    'wheels_stopped', 'pins', 'direction', 'resistor', 'settings_lost', 'something new'];
  for (const cause of causes) {
    for (const clears of ['neutral', 'resume', 'grown_up']) {
      for (const state of [driving, watching]) {
        const it = situationOf(page({state: {...state, stop: {cause, clears, by: 'Zoë'}}}));
        const words = sentence(it);
        assert.equal(words?.tone, 'alarm');
        assert.ok(words && words.text.length > 20, cause);
      }
    }
  }
  const silence = situationOf(page({state: {...driving, stop: {cause: 'silence', clears: 'neutral'}}}));
  assert.equal(sentence(silence)?.text,
    "No answer from the driver’s browser for 0.25\u00a0s. Let go of the stick, then drive.");
  const says = (/** @type {string} */ cause) => sentence(situationOf(page({
    state: {...driving, stop: {cause, clears: 'resume', by: 'Zoë'}},
  })))?.text ?? '';
  assert.match(says('direction'), /direction of a motor is in doubt.*then press “Resume”\.$/);
  assert.match(says('settings_lost'), /could not read its saved settings/);
  assert.match(says('estop_grown_up'), /^A grown-up pressed STOP: Zoë\./);
  const ours = situationOf(page({pushedStop: true,
    state: {...driving, stop: {cause: 'estop', clears: 'resume', by: 'somebody'}}}));
  assert.match(sentence(ours)?.text ?? '', /^You pressed STOP/);
  for (const more of [{state: null}, {link: {kind: 'probing'}}, {link: {kind: 'parked'}},
    {pictureOld: true}, {state: watching}, {state: watching, takenBy: ''},
    {state: {...watching, may_drive: false}}, {state: {...driving, wheels: textOf('hung')}}]) {
    assert.ok(sentence(situationOf(page(more)))?.title);
  }
  assert.equal(sentence(situationOf(page({}))), null);
});

test('refusal goes to the menu, or waits for it', () => {
  /** @type {string[]} */
  const got = [];
  const drawer = {unlock: {refused: (/** @type {{code: string}} */ {code}) => got.push(code)}};
  const error = {kind: 'error', code: 'wheel_taken', what: '', value: '', limit: '', next: '', by: 'Ann', wait_s: 3};
  const early = {drawer: null, refusal: null};
  for (const page of [{drawer}, early]) Page.prototype.refused.call(/** @type {any} */ (page), /** @type {any} */ (error));
  assert.deepEqual(got, ['wheel_taken']);
  assert.equal(early.refusal, error);
});

test('watcher who requests the wheel sees the dialog, and no toast beside it', () => {
  const unlock = Object.assign(Object.create(Unlock.prototype), {tried: 'abc'});
  unlock.refused({kind: 'error', code: 'watch_only', what: 'anders gesagt', value: 'take'});
  assert.equal(unlock.tried, 'abc');
});

test('missing picture is explained in the words of the car', () => {
  /** @param {string} camera */
  const says = (camera) => sentence(situationOf(page({state: {...driving, camera: textOf(camera)}})));
  assert.equal(says('no program x; install it; or not')?.text,
    'The camera: no program x; install it; or not. Do not drive by the old picture.');
  assert.match(says('starting')?.text ?? '', /^The camera: starting\. Do not/);
  const late = sentence(situationOf(page({pictureOld: true})));
  assert.match(late?.text ?? '', /^Do not/);
  for (const words of [says('x; y'), says('starting'), late]) {
    assert.doesNotMatch(words?.text ?? '', /by itself/);
  }
});

test('car without a camera can be driven', () => {
  const state = {...driving, camera: 'none'};
  assert.equal(situationOf(page({state, wishing: false})).kind, 'ready');
  assert.equal(situationOf(page({state, wishing: true})).kind, 'driving');
});

test('driver who took the wheel is named', () => {
  assert.equal(takenBy(driving, watching, false), 'Ann');
  assert.equal(takenBy(driving, watching, true), null);
  assert.equal(takenBy(watching, watching, false), null);
  assert.equal(takenBy(null, watching, false), null);
  assert.equal(takenBy(driving, {...watching, driver: null}, false), '');
});

test('link chip grades the link', () => {
  assert.equal(gradeOf(true, 20, 13, 4, false), 'good');
  assert.equal(gradeOf(true, 20, null, null, false), 'good');
  assert.equal(gradeOf(true, null, null, 4, false), 'good', 'no picture yet');
  assert.equal(gradeOf(true, 20, 200, 4, false), 'slow');
  assert.equal(gradeOf(true, 20, 13, 90, false), 'slow');
  assert.equal(gradeOf(true, 401, 13, 4, false), 'slow');
  assert.equal(gradeOf(false, 20, 13, 4, false), 'none');
  assert.equal(gradeOf(true, 20, 13, 4, true), 'slow');
});

test('sparkline ends at the right edge, and breaks at unknown values', () => {
  const box = {width: 10, height: 4, high: 8};
  assert.equal(sparkline([0, 8], 3, box), 'M5 4L10 0');
  assert.equal(sparkline([0, null, 4, 99], 4, box), 'M0 4M6.7 2L10 0');
  assert.equal(sparkline([1, 2, 3, 4], 2, {...box, high: 4}), 'M0 1L10 0');
  assert.equal(sparkline([], 5, box), '');
  assert.equal(sparkline([0], 1, {width: 10, height: 4}), 'M10 4');
  assert.equal(median([]), null);
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test('arcs: more rings when nearer, ahead is up', () => {
  assert.deepEqual(nearness(null), {rings: 0, tone: 'far'});
  assert.deepEqual(nearness(3), {rings: 0, tone: 'far'});
  assert.deepEqual(nearness(1), {rings: 1, tone: 'far'});
  assert.deepEqual(nearness(0.42), {rings: 2, tone: 'near'});
  assert.deepEqual(nearness(0.1), {rings: 3, tone: 'close'});
  assert.match(arc(50, 0), /^M-20\.3 -45\.7A50 50 0 0 1 20\.3 -45\.7$/);
});

test('errors of the car show message, value, limit and next step', () => {
  assert.equal(DRAWER_STRINGS.carError({kind: 'error', code: 'refused', what: 'throttle refused', value: '99',
    limit: '-1 to 1', next: 'reload', by: '', wait_s: 0}), 'Throttle refused (99; -1 to 1). Next: reload.');
  assert.equal(DRAWER_STRINGS.carError({kind: 'error', code: 'refused', what: 'no', value: '', limit: '', next: '', by: '', wait_s: 0}), 'No.');
});

test('refusal with a text for its code shows that text, with its values', () => {
  /** @param {Partial<import('../../../web/lib/types.js').CarError>} more */
  const says = (more) => DRAWER_STRINGS.carError({kind: 'error', what: 'x', value: 'take', limit: '', next: '', code: 'refused',
    by: '', wait_s: 0, ...more});
  assert.equal(says({code: 'wheel_taken', by: 'Ann', wait_s: 6.6}),
    'Ann is driving. Ask for the wheel, or wait until it is free.');
  assert.match(says({code: 'wheel_taken', by: 'somebody'}), /^Someone is driving/);
  assert.equal(says({code: 'watch_only'}), 'You can only watch. Enter the drive code.');
});

/** @param {string} name */
const text = (name) => readFileSync(new URL(`../../../web/${name}`, import.meta.url), 'utf8');

test('ids used by modules exist in index.html, or in drawer.html for the drawer', () => {
  const first = ids('index.html');
  const all = new Set([...first, ...ids('seat/drawer/drawer.html')]);
  const late = ['app', 'drawer', 'help', 'recorder', 'secure', 'unlock'].map((name) => `drawer/${name}`);
  late.push('link/link_history');
  for (const file of [...late, 'main', 'toast', 'hud/hud', 'hud/message_card', 'hud/fullscreen']) {
    const known = late.includes(file) ? all : first;
    for (const [, id] of text(`seat/${file}.js`).matchAll(/\b(?:byId|button|input|drawing)\('([^']+)'/g)) {
      assert.ok(known.has(id), `${file}.js: #${id}`);
    }
  }
});

/** @param {string} name */
const ids = (name) => new Set([...text(name).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

test('distance is shown only from a young, good measurement', () => {
  const range = {name: 'front', bearing_deg: 0, range_m: 0.5, age_s: 0.05, state: /** @type {const} */ ('ok')};
  assert.equal(isFresh(range), true);
  assert.equal(isFresh({...range, range_m: null}), true, 'nothing there is known, too');
  assert.equal(isFresh({...range, age_s: 1}), false);
  setStale(500); // a profile whose sensors take longer
  assert.equal(isFresh({...range, age_s: 0.54}), true);
  assert.equal(isFresh({...range, age_s: 0.56}), false);
  setStale(200);
  assert.equal(isFresh({...range, age_s: 0.24}), true);
  assert.equal(isFresh({...range, age_s: 0.26}), false);
  assert.equal(isFresh({...range, age_s: null}), false);
  assert.equal(isFresh({...range, state: textOf('does not answer')}), false);
});

test('reason of a closing link is a toast', async (context) => {
  context.mock.timers.enable({apis: ['setTimeout']});
  /** @type {string[]} */
  const toasts = [];
  class Element {
    children = /** @type {Element[]} */ ([]);
    append = (/** @type {{textContent: string}} */ {textContent}) => toasts.push(textContent);
    remove = () => {};
    textContent = '';
  }
  const list = new Element();
  Object.assign(globalThis, {HTMLElement: Element,
    document: {getElementById: () => list, createElement: () => new Element()}});
  const closing = {kind: 'closing', text: {key: 'close_silent', english: 'no message for {seconds} s', values: {seconds: '5'}}};
  new Page(/** @type {any} */ ({})).message(/** @type {any} */ (parse(JSON.stringify(closing))));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(toasts, [STRINGS.closed(closing.text)]);
  assert.match(toasts[0], /no message for 5 s/);
});
