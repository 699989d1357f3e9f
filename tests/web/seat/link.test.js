// The policy of reconnecting, and the car's clock; time is passed in.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {CarClock, RoundTrips} from '../../../web/seat/link/clock.js';
import {faultOf} from '../../../web/seat/link/link.js';
import {Reconnect} from '../../../web/seat/link/reconnect.js';

/** A policy that is up since 0 ms. @param {number} [rttMs] */
function up(rttMs = 5) {
  const policy = new Reconnect(0, rttMs);
  policy.opened(0);
  policy.heard(0);
  return policy;
}
/** Ticks of 50 ms; the acts of each, with their time. @param {Reconnect} policy @param {number} from @param {number} to */
function run(policy, from, to) {
  /** @type {[number, string][]} */
  const acts = [];
  for (let ms = from; ms <= to; ms += 50) {
    for (const act of policy.tick(ms)) {
      acts.push([ms, 'id' in act ? `${act.do} ${act.id}` : act.do]);
    }
  }
  return acts;
}

test('link stays up with messages or pictures and an occasional pong', () => {
  const policy = up();
  for (let ms = 50; ms < 3000; ms += 50) {
    if (ms % 600 === 0) policy.heard(ms);
    else if (ms % 300 === 0) policy.pictured(ms);
    if (ms % 500 === 0) policy.measured(5, ms);
    assert.deepEqual(policy.tick(ms), []);
  }
  assert.equal(policy.state.kind, 'up');
});

test('link without pongs is replaced, despite pictures and states: TCP would delay a STOP', () => {
  for (const [rttMs, lostMs] of [[5, 550], [125, 550], [300, 1250]]) {
    for (const word of /** @type {const} */ (['pictured', 'heard'])) {
      const policy = up(rttMs);
      for (let ms = 50; ms < lostMs; ms += 50) {
        policy[word](ms);
        assert.deepEqual(policy.tick(ms), [], `${word} at ${ms}`);
      }
      policy[word](lostMs);
      assert.deepEqual(policy.tick(lostMs), [{do: 'close'}, {do: 'probe', id: 1}]);
    }
  }
});

test('picture alone does not open the link', () => {
  const policy = new Reconnect(0, 5);
  policy.opened(0);
  policy.pictured(10);
  assert.equal(policy.state.kind, 'opening');
});

test('pongs missed during a sleep of the page do not count, but later ones do', () => {
  const policy = up(20);
  run(policy, 50, 100);
  assert.deepEqual(policy.tick(60_100), []);
  for (let ms = 60_150; ms <= 60_500; ms += 50) {
    policy.pictured(ms);
    assert.deepEqual(policy.tick(ms), []);
  }
  policy.pictured(60_550);
  assert.equal(policy.tick(60_550)[0]?.do, 'close');
});

test('300 ms of silence: close both, probe every 200 ms, at most 5 at once, 2 s each', () => {
  const policy = up();
  const acts = run(policy, 50, 2700);
  assert.deepEqual(acts.slice(0, 2), [[350, 'close'], [350, 'probe 1']]);
  assert.deepEqual(acts.slice(2), [
    [550, 'probe 2'], [750, 'probe 3'], [950, 'probe 4'], [1150, 'probe 5'],
    [2350, 'cancel 1'], [2350, 'probe 6'], [2550, 'cancel 2'], [2550, 'probe 7'],
  ]);
  assert.equal(policy.state.kind, 'probing');
});

test('early or late ticks do not slow the probes down', () => {
  const policy = new Reconnect(0, 5);
  policy.failed(0);
  const sent = [0];
  for (const ms of [50, 100, 150, 197, 250, 300, 350, 440, 490, 590, 610]) {
    for (const act of policy.tick(ms)) if (act.do === 'probe') sent.push(ms);
  }
  assert.deepEqual(sent, [0, 197, 440, 610]);
});

test('first answer cancels the other probes and opens', () => {
  const policy = up();
  run(policy, 50, 900);
  assert.deepEqual(policy.answered(2, 980), [
    {do: 'cancel', id: 1}, {do: 'cancel', id: 3}, {do: 'open'},
  ]);
  assert.equal(policy.rttMs, 430);
  assert.deepEqual(policy.answered(3, 990), [], 'the next one opens nothing');
  policy.opened(1000);
  policy.heard(1010);
  assert.equal(policy.state.kind, 'up');
});

test('connecting socket gets max(1 s, 4 round trips), and so does its first message', () => {
  for (const [rttMs, patience] of [[5, 1000], [700, 2800]]) {
    const policy = new Reconnect(0, rttMs);
    assert.deepEqual(run(policy, 50, patience), []);
    assert.deepEqual(policy.tick(patience + 50)[0], {do: 'close'});
    const late = new Reconnect(0, rttMs);
    run(late, 50, patience - 50);
    late.opened(patience - 50);
    assert.deepEqual(run(late, patience, 2 * patience - 50), []);
    late.heard(2 * patience - 50);
    assert.equal(late.state.kind, 'up', 'works at any round trip');
  }
});

test('sleep of the page does not count as a dead link', () => {
  const policy = up(20);
  run(policy, 50, 100);
  assert.deepEqual(policy.tick(60_100), [], 'hidden for a minute');
  assert.equal(policy.state.kind, 'up');
  assert.deepEqual(run(policy, 60_150, 60_250), []);
  const acts = run(policy, 60_300, 60_600);
  assert.equal(acts[0]?.[1], 'close', 'but silence while awake is one');
});

test('message received during a sleep does not keep the link up after it', () => {
  const policy = up(20);
  run(policy, 50, 100);
  policy.heard(40_000); // a hidden page still receives; then its Wi-Fi went
  assert.deepEqual(policy.tick(60_100), []);
  assert.equal(run(policy, 60_150, 60_500)[0]?.[1], 'close');

  const opening = new Reconnect(0, 5);
  opening.tick(50);
  opening.opened(50_000);
  opening.tick(60_100);
  assert.equal(run(opening, 60_150, 61_200)[0]?.[1], 'close');
});

test('sleep of the page while connecting does not count', () => {
  const policy = new Reconnect(0, 5);
  policy.tick(50);
  assert.deepEqual(policy.tick(30_000), []);
  assert.equal(policy.state.kind, 'opening');
});

test('closed socket is dead at once', () => {
  const policy = up();
  assert.deepEqual(policy.failed(100), [{do: 'close'}, {do: 'probe', id: 1}]);
  policy.unanswered(1);
  assert.deepEqual(run(policy, 150, 400), [[300, 'probe 2']]);
  assert.deepEqual(policy.failed(410), [], 'nothing left to fail');
});

test('car that answers probes but refuses sockets gets few tries', () => {
  const policy = new Reconnect(0, 5);
  let [ms, probes] = [0, 0];
  for (; ms < 10_000; ms += 50) {
    const acts = policy.state.kind === 'opening' ? policy.failed(ms) : policy.tick(ms);
    for (const act of acts) {
      if (act.do !== 'probe') continue;
      probes += 1;
      policy.answered(act.id, ms + 1);
    }
  }
  assert.ok(probes <= 10, `${probes} tries in 10 s`);
  for (const act of policy.tick(ms + 3000)) if ('id' in act) policy.answered(act.id, ms);
  assert.equal(policy.state.kind, 'opening');
  policy.heard(ms);
  assert.equal(policy.refusals, 0);
});

test('refused sockets are known as such only while the car answers', () => {
  const policy = new Reconnect(0, 5);
  let ms = 0;
  /** @param {(id: number) => void} then */
  const tries = (then) => {
    for (const end = ms + 9000; ms < end; ms += 50) {
      for (const act of policy.tick(ms)) if (act.do === 'probe') then(act.id);
    }
  };
  // A socket that hangs is as good as refused.
  tries((id) => policy.answered(id, ms));
  assert.ok(policy.refused);
  tries((id) => policy.unanswered(id));
  assert.ok(!policy.refused, 'now the car is away');
  tries((id) => policy.answered(id, ms));
  assert.ok(policy.refused);
  tries(() => {});
  assert.ok(!policy.refused, 'the probes get no answer');
});

test('part of the way that fails is named', () => {
  const seen = {refused: true, status: 0, secure: false};
  assert.equal(faultOf(seen), 'socket');
  assert.equal(faultOf({...seen, secure: true}), 'secure');
  assert.equal(faultOf({...seen, refused: false, status: 404}), 'status');
  assert.equal(faultOf({...seen, refused: false}), '', 'still connecting');
});

test('parked link stays closed until it is woken', () => {
  const policy = up();
  assert.deepEqual(policy.park('opened again elsewhere'), [{do: 'close'}]);
  assert.deepEqual(run(policy, 50, 5000), []);
  policy.heard(5010);
  policy.unanswered(1);
  assert.equal(policy.state.kind, 'parked');
  assert.deepEqual(policy.wake(5050), [{do: 'close'}, {do: 'probe', id: 1}]);
  assert.deepEqual(policy.wake(5060), []);
  assert.deepEqual(policy.park('closed'), [{do: 'cancel', id: 1}, {do: 'close'}]);
});

test('clock offset comes from the fastest ping of the last 10 s', () => {
  const clock = new CarClock();
  assert.equal(clock.ageMs(0, 5), null);
  assert.equal(clock.samples.length, 0);
  clock.add(100, 140, 5_000_000); // 40 ms: offset 5000 - 120
  clock.add(200, 204, 5_100_500); // 4 ms: offset 5100.5 - 202
  clock.add(300, 360, 5_230_000);
  assert.equal(clock.best?.offsetMs, 4898.5);
  assert.equal(clock.samples.at(-1)?.rttMs, 60);
  assert.equal(clock.ageMs(5_200_000, 321.5), 20);
  clock.add(10_300, 10_330, 15_300_000);
  assert.equal(clock.best?.rttMs, 30, 'the old fast one is forgotten');
  clock.add(500, 400, 1);
  assert.equal(clock.samples.at(-1)?.rttMs, 30, 'no ping comes back before it went');
  clock.reset();
  assert.equal(clock.samples.length, 0);
});

test('round trip is the median of the last ones, and at least the age of an open ping', () => {
  const trips = new RoundTrips();
  trips.sent(0);
  assert.equal(trips.ms(400), null, 'nothing is known before the first');
  trips.answered(0, 500);
  for (let ms = 1000; ms < 3000; ms += 100) {
    trips.sent(ms);
    trips.answered(ms, ms + 5);
  }
  assert.equal(trips.ms(3000), 5, 'the first is forgotten');
  trips.sent(3000);
  trips.sent(3100);
  assert.equal(trips.ms(3003), 5);
  assert.equal(trips.ms(3200), 200);
  trips.answered(3000, 3210);
  assert.equal(trips.ms(3210), 110, 'the next one still waits');
  trips.answered(3100, 3212);
  assert.equal(trips.ms(9000), 5);
  trips.sent(9000);
  trips.reset();
  assert.equal(trips.ms(9900), null);
});

test('clock that stood still leads to a new offset at the next pong', () => {
  const clock = new CarClock();
  for (let ms = 0; ms < 5000; ms += 100) clock.add(ms, ms + 4, (ms + 2 + 1e6) * 1000);
  assert.equal(clock.ageMs(1e9, 1000), 1000);
  clock.add(5000, 5080, (5040 + 20_000 + 1e6) * 1000);
  assert.equal(clock.ageMs((20_000 + 1e6) * 1000, 1000), 1000, 'it stood for 20 s');
  clock.add(5100, 5104, (5102 + 20_050 + 1e6) * 1000);
  assert.equal(clock.ageMs((20_050 + 1e6) * 1000, 1000), 1000, 'once more, for 50 ms');
});

test('drift or an asymmetric round trip does not reset the clock offset', () => {
  const clock = new CarClock();
  clock.add(0, 4, 2000);
  clock.add(100, 300, 299_000);
  clock.add(9000, 9004, 9_017_000);
  assert.equal(clock.samples.length, 3);
});
