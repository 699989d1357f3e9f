// Curves, keys and the merging of wishes.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {clamp, ramp, steerRamp, stick, throttleRamp} from '../../../web/lib/curves.js';
import {Keyboard} from '../../../web/seat/input/keyboard.js';
import {across, tilt} from '../../../web/seat/input/tilt.js';
import {Pad} from '../../../web/seat/input/touch.js';
import {LateLinkFilter, NEUTRAL, StopRequest, Sender, Wishes, isNeutral} from '../../../web/seat/input/command.js';

test('stick: dead zone, fine control when slow, full at the end, symmetric', () => {
  assert.equal(stick(0), 0);
  assert.equal(stick(0.08), 0);
  assert.equal(stick(-0.05), 0);
  assert.equal(stick(1), 1);
  assert.equal(stick(-1), -1);
  assert.equal(stick(7), 1);
  assert.equal(stick(NaN), 0);
  assert.ok(stick(0.5) < 0.35, 'half way asks for about a third');
  let last = 0;
  for (let way = 0; way <= 1; way += 0.01) {
    assert.ok(stick(way) >= last);
    assert.equal(stick(-way) + stick(way), 0);
    last = stick(way);
  }
  assert.equal(clamp(3), 1);
  assert.equal(clamp(-3), -1);
});

test('key moves at once and ramps up', () => {
  assert.equal(ramp(0, 0.4, 500), 0.4);
  assert.equal(ramp(250, 0.4, 500), 0.7);
  assert.equal(ramp(9999, 0.4, 500), 1);
  assert.equal(ramp(-5, 0.4, 500), 0.4);
  assert.ok(throttleRamp(0) > 0.2 && steerRamp(0) > 0.2);
  assert.equal(throttleRamp(2000), 1);
});

test('tilt: steers to the lower side from the centre, at any screen rotation', () => {
  /** @param {number} beta @param {number} gamma @param {number} angle */
  const whole = (beta, gamma, angle) => Math.round(across(beta, gamma, angle));
  assert.equal(whole(10, 20, 0), 20);
  assert.equal(whole(10, 20, 90), 10);
  assert.equal(whole(10, 20, 180), -20);
  assert.equal(whole(10, 20, 270), -10);
  assert.equal(whole(5, -89, 90), 5);
  assert.equal(whole(175, 89, 90), 5, 'past the upright it is the same turn');
  assert.equal(whole(-175, -89, 270), 5);
  assert.equal(tilt(0, 5, 0, 5), 0);
  assert.equal(tilt(0, 60, 0, 5), -1, 'right hand low steers right');
  assert.equal(tilt(-60, 0, 90, 0), 1);
});

/** A keyboard with a clock, and its recorded effects. */
function keyboard() {
  const did = {set: /** @type {any[]} */ ([]), stops: 0, escapes: 0,
    commands: /** @type {string[]} */ ([]), swallowed: 0};
  const clock = {ms: 0};
  const keys = new Keyboard({
    set: (wish) => did.set.push(wish), stop: () => (did.stops += 1),
    escape: () => (did.escapes += 1), command: (key) => did.commands.push(key),
    used: () => {}, now: () => clock.ms,
  });
  /** @param {string} code @param {Record<string, unknown>} [more] */
  const event = (code, more = {}) => /** @type {any} */ ({
    code, key: code, target: null, preventDefault: () => (did.swallowed += 1),
    stopImmediatePropagation: () => {}, ...more,
  });
  return {keys, did, clock, event};
}

// Node has no such classes; the page only asks whether a target is one of them.
Object.assign(globalThis, {
  HTMLElement: class {}, HTMLInputElement: class {}, HTMLSelectElement: class {},
  HTMLTextAreaElement: class {},
});
/** @param {string} type */
const inputOf = (type) => Object.assign(new globalThis.HTMLInputElement(), {type});

test('arrows and WASD drive, left is +, release is at once', () => {
  const {keys, did, clock, event} = keyboard();
  keys.down(event('ArrowUp'));
  assert.ok(did.set.at(-1).throttle > 0);
  clock.ms = 2000;
  keys.down(event('KeyA'));
  assert.equal(did.set.at(-1).throttle, 1);
  assert.ok(did.set.at(-1).steer > 0);
  keys.up(event('ArrowUp'));
  keys.up(event('KeyA'));
  assert.deepEqual(did.set.at(-1), {throttle: 0, steer: 0});
  keys.down(event('KeyS'));
  keys.down(event('ArrowRight'));
  assert.ok(did.set.at(-1).throttle < 0 && did.set.at(-1).steer < 0);
  keys.down(event('KeyW'));
  assert.equal(did.set.at(-1).throttle, 0, 'both ways are none');
});

test('Space stops and Esc escapes once per push, with any element focused', () => {
  const {keys, did, event} = keyboard();
  for (const target of [null, inputOf('checkbox'), inputOf('range'), new globalThis.HTMLSelectElement()]) {
    keys.down(event('Space', {key: ' ', target}));
    keys.down(event('Space', {key: ' ', target, repeat: true}));
    keys.up(event('Space', {key: ' ', target}));
  }
  keys.down(event('Escape', {ctrlKey: true}));
  keys.down(event('Escape', {repeat: true}));
  assert.deepEqual([did.stops, did.escapes], [4, 1]);
  assert.equal(did.swallowed, 14, 'a focused button sees none of it');
});

test('text field keeps its keys: no stop, no shortcut, no wish', () => {
  const {keys, did, event} = keyboard();
  const editable = Object.assign(new globalThis.HTMLElement(), {isContentEditable: true});
  const fields = ['text', 'password', 'search', 'number', 'email', 'url', 'tel', 'date'].map(inputOf);
  for (const target of [...fields, new globalThis.HTMLTextAreaElement(), editable]) {
    for (const [code, key] of [['KeyM', 'M'], ['Space', ' '], ['KeyW', 'w'], ['KeyH', 'h'],
      ['Slash', '?'], ['ArrowUp', 'ArrowUp'], ['Digit1', '1']]) {
      keys.down(event(code, {key, target}));
      keys.up(event(code, {key, target}));
    }
  }
  assert.deepEqual([did.stops, did.escapes, did.swallowed], [0, 0, 0]);
  assert.deepEqual([did.set, did.commands], [[], []]);
});

test('Esc in a text field escapes, but never while it ends a composition', () => {
  const {keys, did, event} = keyboard();
  const target = inputOf('text');
  keys.down(event('Escape', {target, isComposing: true}));
  assert.equal(did.escapes, 0);
  keys.down(event('Escape', {target}));
  assert.deepEqual([did.escapes, did.stops], [1, 0]);
});

test('key still down after a stop does not drive', () => {
  const {keys, did, event} = keyboard();
  keys.down(event('ArrowUp'));
  keys.release();
  keys.down(event('ArrowUp', {repeat: true}));
  assert.equal(keys.busy, false);
  assert.equal(did.set.length, 1);
  keys.up(event('ArrowUp'));
  keys.down(event('ArrowUp'));
  assert.equal(keys.busy, true);
});

test('Cmd releases all keys: macOS does not report when a key is lifted under it', () => {
  const {keys, did, event} = keyboard();
  keys.down(event('ArrowUp'));
  keys.down(event('MetaLeft', {key: 'Meta', metaKey: true}));
  assert.deepEqual(did.set.at(-1), {throttle: 0, steer: 0});
  keys.down(event('ArrowUp', {metaKey: true, repeat: true}));
  keys.down(event('ArrowUp', {repeat: true}));
  assert.equal(keys.busy, false);
});

test('letters belong to fields and to shortcuts of the browser', () => {
  const {keys, did, event} = keyboard();
  keys.down(event('KeyW', {target: inputOf('range')}));
  keys.down(event('Tab', {target: inputOf('range')}));
  keys.down(event('KeyL', {ctrlKey: true}));
  assert.equal(did.set.length + did.commands.length, 0);
  const box = inputOf('checkbox');
  keys.down(event('ArrowUp', {target: box}));
  keys.up(event('ArrowUp', {target: box}));
  assert.equal(did.set.length, 2, 'a box that was ticked does not keep the car');
  keys.down(event('KeyL'));
  keys.down(event('KeyF'));
  keys.down(event('Slash', {key: '?'}));
  keys.down(event('KeyP'));
  keys.down(event('KeyM'));
  keys.down(event('KeyL', {repeat: true}));
  assert.deepEqual(did.commands, ['lights', 'full', 'keys', 'snapshot', 'mark']);
});

test('keys without a code drive by their name or number, and let go', () => {
  const {keys, did, event} = keyboard();
  const remote = [['ArrowUp', 38], ['Up', 0], ['w', 87], ['W', 0], ['Unidentified', 38], ['', 87]];
  for (const code of ['', 'Unidentified', undefined]) {
    for (const [key, keyCode] of remote) {
      keys.down(event('', {code, key, keyCode}));
      assert.ok(did.set.at(-1).throttle > 0, `${key} ${keyCode}`);
      keys.up(event('', {code, key, keyCode}));
      assert.equal(did.set.at(-1).throttle, 0, `${key} ${keyCode}`);
    }
  }
  keys.down(event('', {key: 'Left'}));
  assert.ok(did.set.at(-1).steer > 0);
  keys.up(event('', {key: 'Unidentified', keyCode: 0}));
  assert.equal(did.set.at(-1).steer, 0, 'a release without a name may be any key’s');
  keys.down(event('', {key: 'l'}));
  for (const key of [' ', 'Spacebar', 'MediaStop']) keys.down(event('', {key}));
  keys.down(event('', {key: 'Unidentified', keyCode: 32}));
  keys.down(event('', {key: 'Esc'}));
  assert.deepEqual([did.commands, did.stops, did.escapes], [['lights'], 4, 1]);
  const before = did.set.length;
  for (const key of ['F1', 'ц', 'GoBack', '']) keys.down(event('', {key, keyCode: 229}));
  assert.equal(did.set.length, before);
});

test('after a field vanished typing on drives nothing until a second without keys', () => {
  const {keys, did, clock, event} = keyboard();
  /** @param {string} code */
  const press = (code) => {
    keys.down(event(code));
    keys.up(event(code));
    clock.ms += 300;
  };
  for (const target of [inputOf('text'), inputOf('range'), new globalThis.HTMLSelectElement()]) {
    clock.ms += 5000;
    keys.down(event('KeyS', {target}));
    keys.down(event('KeyS', {repeat: true}));  // the field is gone
    keys.up(event('KeyS'));
    for (const code of ['KeyW', 'KeyA', 'KeyF', 'KeyL', 'ArrowUp']) press(code);
    assert.deepEqual([did.set, did.commands], [[], []]);
    keys.down(event('Space'));
    keys.up(event('Space'));
    keys.down(event('KeyD'));
    clock.ms += 5000;
    keys.down(event('KeyW'));
    assert.deepEqual(did.set, [], 'the D is still down');
    keys.up(event('KeyD'));
    keys.up(event('KeyW'));
  }
  assert.equal(did.stops, 3, 'a stop always counts');
  clock.ms += 1000;
  press('KeyW');
  assert.ok(did.set[0].throttle > 0);
});

test('field that a person leaves or never typed into lets the next key drive', () => {
  const {keys, did, event} = keyboard();
  const target = inputOf('text');
  const on = /** @type {Record<string, (event: any) => void>} */ ({});
  keys.listen(/** @type {any} */ ({addEventListener: (/** @type {string} */ name, /** @type {any} */ act) => (on[name] = act)}));
  for (const code of ['Enter', 'Tab', 'Escape']) {
    on.focusin({target});
    keys.down(event('KeyW', {target}));
    keys.down(event(code, {target}));
    keys.down(event('KeyW'));
    keys.up(event('KeyW'));
  }
  on.focusin({target});
  on.pointerdown({target: null});
  keys.down(event('KeyW'));
  keys.up(event('KeyW'));
  assert.equal(did.set.length, 8);
  on.focusin({target});
  on.pointerdown({target});
  keys.down(event('KeyW'));
  assert.equal(did.set.length, 8, 'vanished before the first letter');
});

class FakePad extends EventTarget {
  style = {setProperty: () => {}, removeProperty: () => {}};
  classList = {add: () => {}, remove: () => {}};
  /** @type {DOMException | null} */
  fault = null;

  setPointerCapture() {
    if (this.fault) throw this.fault;
  }

  getBoundingClientRect() {
    return {left: 0, top: 0, bottom: 200, width: 200, height: 200};
  }
}

test('pad ignores a pointer that it cannot capture, and takes the next one', () => {
  Object.assign(globalThis, {innerHeight: 800});
  const element = new FakePad();
  /** @type {number[]} */
  const set = [];
  new Pad({element: /** @type {any} */ (element), axis: 'y', used: () => {}, set: (value) => set.push(value)});
  /** @param {string} name @param {number} pointerId @param {number} clientY */
  const send = (name, pointerId, clientY) => element.dispatchEvent(
    Object.assign(new Event(name, {cancelable: true}), {pointerId, clientX: 100, clientY, button: 0}));
  element.fault = new DOMException('the finger has gone', 'NotFoundError');
  send('pointerdown', 1, 100);
  send('pointermove', 1, 40);
  assert.deepEqual(set, [], 'without capture nobody would say that it was let go');
  element.fault = null;
  send('pointerdown', 2, 100);
  send('pointermove', 2, 38);
  send('pointerup', 2, 38);
  assert.deepEqual(set, [1, 0]);
});

test('wishes: most wins on each axis; tilt only while something drives', () => {
  const wishes = new Wishes();
  assert.deepEqual(wishes.merged, {throttle: 0, steer: 0});
  wishes.set('tilt', {throttle: 0, steer: 0.9});
  assert.ok(isNeutral(wishes.merged), 'letting go of the throttle is neutral');
  wishes.set('keys', {throttle: 0.5, steer: -0.2});
  wishes.set('touch', {throttle: -0.7, steer: 0});
  assert.deepEqual(wishes.merged, {throttle: -0.7, steer: 0.9});
  wishes.clear();
  assert.deepEqual(wishes.merged, {throttle: 0, steer: 0});
  wishes.set('keys', {throttle: -0.00001, steer: 0.33333});
  assert.ok(Object.is(wishes.merged.throttle, 0), 'never -0');
  assert.equal(wishes.merged.steer, 0.333);
});

test('wish is sent at once on change, else every 40 ms', () => {
  const sender = new Sender(40);
  const go = {throttle: 0.5, steer: 0};
  assert.equal(sender.offer(NEUTRAL, 100)?.seq, 1);
  assert.equal(sender.offer(NEUTRAL, 120), null);
  assert.deepEqual(sender.offer(go, 121), {kind: 'drive', seq: 2, t: 121, throttle: 0.5, steer: 0});
  assert.equal(sender.offer({throttle: 0.6, steer: 0}, 122), null, 'a mouse is no flood');
  assert.equal(sender.offer({throttle: 0.6, steer: 0}, 129)?.throttle, 0.6);
  assert.equal(sender.offer(NEUTRAL, 130)?.seq, 4, 'letting go never waits');
  assert.equal(sender.offer(NEUTRAL, 169)?.seq, 5);
  sender.reset();
  assert.equal(sender.offer(NEUTRAL, 170)?.seq, 1);
});

test('late link blocks driving until all inputs are released', () => {
  const bar = new LateLinkFilter();
  const go = {throttle: 0.5, steer: 0};
  assert.equal(bar.pass(go, false), go);
  assert.equal(bar.pass(go, true), NEUTRAL);
  assert.equal(bar.pass(go, false), NEUTRAL, 'the key is still down');
  assert.equal(bar.pass(NEUTRAL, false), NEUTRAL);
  assert.equal(bar.pass(go, false), go);
  assert.equal(bar.pass(NEUTRAL, true), NEUTRAL);
  assert.equal(bar.pass(go, true), NEUTRAL, 'pushed while it is late');
});

test('STOP waits for the pong to a ping sent after it', () => {
  const stop = new StopRequest();
  assert.equal(stop.waiting, false);
  stop.push(0);
  stop.answered(7);
  assert.equal(stop.waiting, true, 'it has not gone out');
  stop.sent(8);
  stop.answered(8);
  assert.equal(stop.waiting, true, 'that ping was before it');
  stop.sent(11);
  stop.answered(9);
  assert.equal(stop.waiting, true, 'it went out anew, on another socket');
  stop.answered(12);
  assert.equal(stop.waiting, false);
  stop.push(100);
  stop.answered(99);
  assert.equal(stop.waiting, true, 'a second push is another one');
});

test('STOP waits while the page is visible; after a minute hidden it is dropped', () => {
  const stop = new StopRequest();
  stop.push(1000);
  stop.pageSeen(61_000);
  assert.equal(stop.waiting, true);
  stop.pageSeen(61_001);
  assert.equal(stop.waiting, false);
});
