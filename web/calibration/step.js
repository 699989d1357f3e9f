/** One step on the page: its place in the run, one question, the button that moves, the results.
 * It is drawn once; each answer of the car changes its text and visible parts. */

import {t} from '../lang/words.js';
import {make, setAttr, setText, show} from '../lib/dom.js';
import {actionButton, choice, figure, paragraph, row} from './fields.js';
import {STRINGS} from './strings.js';

/** @import {Step} from './api.js' */
/** Resolves to false if the car refused. @typedef {(word: string, figures?: number[]) => Promise<boolean>} Say */

/** Steps for which nothing moves. */
const STILL = ['distance', 'battery', 'neutral'];
const THROTTLES = [0.3, 0.6, 1, -0.3, -0.6];
/** Phases that wait for a person's answer. @type {Record<string, string[]>} */
const ASKS = {
  direction: ['asks', 'right', 'turn_round', 'settled'], dead_band: ['coarse', 'fine'],
  neutral: ['asks', 'far', 'stopped', 'right', 'done'], dead_band_us: ['first', 'second'],
  ends: ['hold'], straight: ['asks'], speed: ['hold', 'drives', 'again', 'short', 'done'],
  distance: ['looks', 'asks', 'again', 'done'], battery: ['asks', 'done'],
};
/** Phases of a battery whose voltage a person is asked to confirm. */
const ODD = ['odd_full', 'odd_empty'];
/** Steps with several questions, a screen each. @type {Record<string, string[]>} */
const SCREENS = {ends: ['left', 'right', 'centre'], straight: ['asks', 'aside'], battery: ['kind', 'asks']};

export class StepView {
  /**
   * @param {Step} step
   * @param {{say: Say, keep: () => void, back: () => void, skip: () => void, all: () => void,
   *   hold: import('./hold.js').Hold, take: () => void, at: number, count: number, news: string}} parts
   *   `at`: its place among the `count` steps of the run
   */
  constructor(step, {say, keep, back, skip, all, hold, take, at, count, news}) {
    this.kind = step.kind;
    this.element = make('div', '');
    this.element.className = 'calibration-step';
    const bar = document.createElement('progress');
    Object.assign(bar, {max: count, value: at + 1});
    bar.setAttribute('aria-hidden', 'true');
    const place = paragraph(STRINGS.place(at, count));
    place.dataset.testid = 'calibration-progress';
    this.news = paragraph(news);
    this.news.setAttribute('role', 'status');
    this.news.dataset.testid = 'calibration-news';
    show(this.news, news !== '');
    const title = make('h3', STRINGS.stepTitle(step.kind, step.of));
    title.tabIndex = -1;
    this.says = paragraph('');
    this.says.setAttribute('role', 'status');
    this.says.dataset.testid = 'calibration-says';
    this.now = paragraph('', 'now');
    this.now.dataset.testid = 'calibration-now';
    this.fault = paragraph('', 'fault');
    this.fault.setAttribute('role', 'alert');
    this.hold = actionButton(t.calibration.hold, () => {}, 'calibration-hold');
    this.hold.className = 'hold';
    hold.listen(this.hold);
    this.back = paragraph('', 'now');
    this.back.setAttribute('role', 'status');
    this.back.dataset.testid = 'calibration-held-back';
    this.step = step;
    this.finger = false;
    this.driving = true;
    this.take = row([paragraph(t.calibration.takeFirst), actionButton(t.take, take)], 'take');
    this.tell = say;
    this.screens = SCREENS[step.kind] ?? [''];
    this.at = 0;
    /** Was the last question of several answered? */
    this.answered = false;
    /** The wall was near since this phase began: the tape may be read. */
    this.near = false;
    this.answers = this.answersOf(step, async (word, figures) => {
      const taken = await say(word, figures);
      this.answered = taken && SCREENS[step.kind] !== undefined && step.kind !== 'ends';
      this.update(this.step, this.driving);
      return taken;
    });
    this.confirm = row(['sure', 'unsure'].map((word) =>
      actionButton(STRINGS.answer(word), () => {
        this.answered = word === 'sure';
        void say(word);
      }, `say-${word}`)), 'row answers');
    this.runs = make('ul', '');
    this.found = paragraph('', 'found');
    this.found.dataset.testid = 'calibration-found';
    this.keep = actionButton(t.calibration.keep, keep, 'calibration-keep');
    this.keep.className = 'primary';
    this.forward = actionButton('', () => (this.asksMore() ? this.go(this.at + 1) : skip()), 'calibration-skip');
    const backward = () => (this.asks() && this.at > 0 ? this.go(this.at - 1)
      : this.answered ? this.go(this.at) : back());
    this.element.append(row([place, bar], 'row place'),
      title, this.news, this.says, this.now, this.take, this.hold, this.back, this.answers, this.confirm, this.runs,
      this.found, this.fault, this.keep,
      row([actionButton(t.calibration.back, backward, 'calibration-back'),
        actionButton(t.calibration.all, all, 'calibration-all'), this.forward], 'row way'));
    this.title = title;
    this.update(step, true);
  }

  /** Does this phase wait for an answer that was not given yet? */
  asks() {
    return !this.answered && (ASKS[this.step.kind]?.includes(this.step.phase) ?? false);
  }

  asksMore() {
    return this.asks() && this.at < this.screens.length - 1;
  }

  /** Shows another question of the step. @param {number} at */
  go(at) {
    this.at = at;
    this.answered = false;
    if (this.step.kind === 'ends') void this.tell(this.screens[at] ?? '');
    this.update(this.step, this.driving);
    this.title.focus();
  }

  /** @param {boolean} held */
  held(held) {
    this.finger = held;
    const {moves, held_back: back} = this.step;
    const moving = moves ? t.calibration.held : t.calibration.heldStill;
    setText(this.hold, held ? moving : t.calibration.hold);
    this.hold.classList.toggle('held', held);
    const why = held && back ? STRINGS.heldBack(back) : '';
    setText(this.back, why);
    show(this.back, why !== '');
  }

  /** Dims the button while nothing can move the car. @param {boolean} can */
  setCanMove(can) {
    setAttr(this.hold, 'aria-disabled', String(!can));
  }

  /** @param {Step} step @param {boolean} driving is this page at the wheel? */
  update(step, driving) {
    if (step.phase !== this.step.phase) this.near = false;
    this.near ||= step.near ?? false;
    this.step = step;
    this.driving = driving;
    this.held(this.finger);
    const still = STILL.includes(step.kind), verified = step.kind === 'resistor' && step.phase === 'done';
    if (!ASKS[step.kind]?.includes(step.phase) && !ODD.includes(step.phase)) [this.at, this.answered] = [0, false];
    const asks = this.asks();
    const screen = asks && SCREENS[step.kind] ? this.screens[this.at] : undefined;
    setText(this.says, STRINGS.phase(step, screen));
    setText(this.now, this.figures(step));
    const failed = step.phase === 'failed';
    show(this.hold, !still && !failed && driving);
    show(this.take, !still && !failed && !driving);
    show(this.answers, asks);
    /** @type {NodeListOf<HTMLElement>} */
    const questions = this.answers.querySelectorAll('[data-screen]');
    for (const part of questions) show(part, part.dataset.screen === screen);
    if (step.kind === 'ends') {
      const words = screen === 'centre' ? ['left', 'right'] : ['more', 'less'];
      for (const [index, button] of this.answers.querySelectorAll('button').entries()) setText(button, STRINGS.answer(words[index] ?? ''));
    }
    this.wait(step);
    setText(this.forward, this.asksMore() || step.phase === 'right' || verified ? t.calibration.next : t.calibration.skip);
    show(this.confirm, ODD.includes(step.phase));
    const runs = (step.runs ?? []).map((run) => STRINGS.run(run));
    if (this.runs.dataset.words !== runs.join()) {
      this.runs.dataset.words = runs.join();
      this.runs.replaceChildren(...runs.map((run) => make('li', run)));
    }
    show(this.runs, runs.length > 0);
    const found = Object.entries(step.found).map(([key, value]) => STRINGS.result(key, value));
    const whole = found.length > 0 && !this.asksMore();
    setText(this.found, found.join(' · '));
    show(this.found, whole);
    show(this.keep, whole);
  }

  /** Keeps the tape's field off, with the reason, until the wall is about where it should be. @param {Step} step */
  wait(step) {
    const reason = this.answers.querySelector('#tape-waits');
    if (!reason) return;
    /** @type {NodeListOf<HTMLInputElement | HTMLButtonElement>} */
    const parts = this.answers.querySelectorAll('input, button');
    if (!this.near && this.answers.contains(document.activeElement)) this.title.focus();
    for (const part of parts) part.disabled = !this.near;
    setText(reason, this.near ? '' : STRINGS.waits(step));
  }

  /** @param {Step} step */
  figures(step) {
    switch (step.kind) {
      case 'dead_band': return STRINGS.duty(step);
      case 'neutral':
      case 'dead_band_us': return STRINGS.pulse(step);
      case 'ends': return STRINGS.servo(step, this.screens[this.at] ?? '');
      case 'straight': return STRINGS.setting(step);
      case 'distance': return STRINGS.sees(step.range_m);
      case 'battery': return STRINGS.volts(step.volts);
      case 'speed': return STRINGS.shares(step.shares ?? {});
      default: return '';
    }
  }

  /** @param {Step} step @param {Say} say */
  answersOf(step, say) {
    const answer = (/** @type {string} */ word) =>
      actionButton(STRINGS.answer(word), () => say(word), `say-${word}`);
    const many = (/** @type {string[]} */ all) => row(all.map((word) => answer(word)), 'row answers');
    switch (step.kind) {
      case 'resistor': return many([]);
      case 'direction':
      case 'neutral': return many(step.words ?? []);
      case 'dead_band':
      case 'dead_band_us': return many(['turns']);
      case 'battery': return row([onScreen('kind', row(['lithium', 'nimh', 'line'].map((word) =>
        actionButton(STRINGS.answer(word), () => {
          void this.tell(word);
          this.go(1);
        }, `say-${word}`)), 'row answers')), onScreen('asks', many(['full', 'empty']))], 'answers');
      case 'ends': return many(['more', 'less']);
      case 'straight': return straightAnswers(say);
      case 'speed': return speedAnswers(step, say);
      default: return tapeAnswers(say);
    }
  }
}

/** @param {Say} say */
function straightAnswers(say) {
  const way = figure(t.calibration.wayM, 'way-m');
  const aside = figure(t.calibration.asideCm, 'aside-cm');
  const side = choice('', [['1', t.calibration.toLeft], ['-1', t.calibration.toRight]], 'aside-to');
  side.field.setAttribute('aria-label', t.calibration.asideCm);
  const act = () => say('aside', [way.field.valueAsNumber, aside.field.valueAsNumber * Number(side.field.value)]);
  return row([onScreen('asks', way.label), onScreen('aside', row([aside.label, side.label,
    actionButton(t.calibration.sayAll, act, 'say-aside')], 'answers'))], 'answers');
}

/** Marks a part of one question only. @param {string} name @param {HTMLElement} part */
function onScreen(name, part) {
  part.dataset.screen = name;
  return part;
}

/** @param {Step} step @param {Say} say */
function speedAnswers(step, say) {
  const shares = [...new Set([step.throttle ?? 0.3, ...THROTTLES])];
  const throttle = choice(t.calibration.throttle, shares.map((share) =>
    [String(share), STRINGS.throttle(share)]), 'throttle');
  throttle.field.addEventListener('change', () => say('throttle', [Number(throttle.field.value)]));
  const way = figure(t.calibration.wayM, 'hand-m');
  const took = figure(t.calibration.tookS, 'hand-s');
  const act = () => say('measured', [way.field.valueAsNumber, took.field.valueAsNumber]);
  const hand = document.createElement('details');
  hand.append(make('summary', t.calibration.byHand), way.label, took.label, actionButton(t.calibration.sayAll, act, 'say-measured'),
    actionButton(t.calibration.answers.forget, () => say('forget'), 'say-forget'));
  return row([throttle.label, hand], 'answers');
}

/** @param {Say} say */
function tapeAnswers(say) {
  const tape = figure(t.calibration.tapeM, 'tape-m');
  const reason = paragraph('');
  reason.id = 'tape-waits';
  reason.setAttribute('role', 'status');
  tape.field.setAttribute('aria-describedby', reason.id);
  return row([reason, tape.label, actionButton(t.calibration.say, () => say('tape', [tape.field.valueAsNumber]), 'say-tape')], 'answers');
}
