/** One step on the page: the instruction, the button that moves, a person's answer, the
 * results. It is drawn once; each answer of the car changes its text and visible parts. */

import {t} from '../lang/words.js';
import {make, setAttr, setText, show} from '../lib/dom.js';
import {actionButton, choice, figure, paragraph, row} from './fields.js';
import {STRINGS} from './strings.js';

/** @import {Step} from './api.js' */
/** @typedef {(word: string, figures?: number[]) => void} Say */

/** Steps for which nothing moves. */
const STILL = ['distance', 'battery'];
const THROTTLES = [0.3, 0.6, 1, -0.3, -0.6];
/** Phases that wait for a person's answer. @type {Record<string, string[]>} */
const ASKS = {
  direction: ['asks', 'right', 'turn_round', 'settled'], dead_band: ['coarse', 'fine'],
  ends: ['hold'], straight: ['asks'], speed: ['hold', 'drives', 'again', 'short', 'done'],
  distance: ['looks', 'asks', 'again', 'done'], battery: ['asks', 'done'],
};
/** Phases of a battery whose voltage a person is asked to confirm. */
const ODD = ['odd_full', 'odd_empty'];

export class StepView {
  /**
   * @param {Step} step
   * @param {{say: Say, keep: () => void, back: () => void, hold: import('./hold.js').Hold,
   *   take: () => void}} parts
   */
  constructor(step, {say, keep, back, hold, take}) {
    this.kind = step.kind;
    this.element = make('div', '');
    this.element.className = 'calibration-step';
    const title = make('h4', STRINGS.stepTitle(step.kind, step.of));
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
    this.take = row([paragraph(t.calibration.takeFirst), actionButton(t.take, take)], 'take');
    this.answers = this.answersOf(step, say);
    this.confirm = row(['sure', 'unsure'].map((word) =>
      actionButton(STRINGS.answer(word), () => say(word), `say-${word}`)), 'row answers');
    this.runs = make('ul', '');
    this.found = paragraph('', 'found');
    this.found.dataset.testid = 'calibration-found';
    this.keep = actionButton(t.calibration.keep, keep, 'calibration-keep');
    this.keep.className = 'primary';
    this.element.append(title, this.says, this.now, this.take, this.hold, this.back, this.answers, this.confirm, this.runs,
      this.found, this.fault, row([this.keep, actionButton(t.calibration.back, back, 'calibration-back')]));
    this.title = title;
    this.update(step, true);
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
    this.step = step;
    this.held(this.finger);
    const still = STILL.includes(step.kind);
    const asks = ASKS[step.kind];
    setText(this.says, STRINGS.phase(step));
    setText(this.now, this.figures(step));
    const failed = step.phase === 'failed';
    show(this.hold, !still && !failed && driving);
    show(this.take, !still && !failed && !driving);
    show(this.answers, asks?.includes(step.phase) ?? false);
    show(this.confirm, ODD.includes(step.phase));
    const runs = (step.runs ?? []).map((run) => STRINGS.run(run));
    if (this.runs.dataset.words !== runs.join()) {
      this.runs.dataset.words = runs.join();
      this.runs.replaceChildren(...runs.map((run) => make('li', run)));
    }
    show(this.runs, runs.length > 0);
    const found = Object.entries(step.found).map(([key, value]) =>
      `${STRINGS.name(key)}: ${STRINGS.value(value)}`);
    setText(this.found, found.join('. '));
    show(this.found, found.length > 0);
    show(this.keep, found.length > 0);
  }

  /** @param {Step} step */
  figures(step) {
    switch (step.kind) {
      case 'dead_band': return STRINGS.duty(step);
      case 'ends': return STRINGS.servo(step);
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
      case 'direction': return many(step.words ?? []);
      case 'dead_band': return many(['turns']);
      case 'battery': return row([many(['full', 'empty']), paragraph(t.calibration.kind),
        many(['line', 'lithium', 'nimh'])], 'answers');
      case 'ends': return row([many(['left', 'centre', 'right']), many(['more', 'less'])], 'answers');
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
  return row([way.label, aside.label, side.label, actionButton(t.calibration.sayAll, act, 'say-aside')], 'answers');
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
  hand.append(make('summary', t.calibration.byHand), way.label, took.label, actionButton(t.calibration.sayAll, act, 'say-measured'));
  return row([throttle.label, actionButton(t.calibration.answers.forget, () => say('forget'), 'say-forget'), hand], 'answers');
}

/** @param {Say} say */
function tapeAnswers(say) {
  const tape = figure(t.calibration.tapeM, 'tape-m', 0.5);
  return row([tape.label, actionButton(t.calibration.say, () => say('tape', [tape.field.valueAsNumber]), 'say-tape')], 'answers');
}
