/** Small map of the drive, estimated from throttle and steering. Loads when it is switched on;
 * the path stays in the page. */

import {t, unit} from '../../lang/words.js';
import {byId, setText} from '../../lib/dom.js';

/** @typedef {Pick<import('../../lib/types.js').State, 'clock_us' | 'throttle' | 'steer'>} Setpoint */
/** Parts of the car's profile. `turn` is null for a car that steers, `circle_m` if it is unknown.
 * @typedef {{guard: {top_mps: number, brake_mps2: number}, speeds: {least_mps: number},
 *   turn: number | null, circle_m: number | null}} Motion */

/** The usual toy car, until the car has answered. @type {Motion} */
const USUAL = {
  guard: {top_mps: 1.4, brake_mps2: 0.9}, speeds: {least_mps: 0.2}, turn: null, circle_m: null,
};
const CIRCLE_M = 0.8;
/** Without news the car stops by then. */
const LONGEST_S = 0.3;
const POINTS = 400;
const STEP_M = 0.05;
const DRAW_MS = 95;
const LEAST_SPAN_M = 2;

/**
 * Speed after some seconds, and the way until then. It falls by the car's deceleration, and rises as
 * a DC motor's, at first twice as fast: the assumptions of the car's guard.
 * @param {number} mps @param {number} goal @param {Motion['guard']} guard @param {number} seconds
 */
function run(mps, goal, {top_mps: top, brake_mps2: brake}, seconds) {
  const turns = goal * mps < 0;
  if (turns || Math.abs(goal) < Math.abs(mps)) {
    const slowsS = Math.min(seconds, Math.abs((turns ? 0 : goal) - mps) / brake);
    const end = mps - Math.sign(mps) * brake * slowsS;
    return {end, wayM: ((mps + end) / 2) * slowsS + end * (seconds - slowsS)};
  }
  const lagS = top / (2 * brake);
  const share = 1 - Math.exp(-seconds / lagS);
  return {end: mps + (goal - mps) * share, wayM: goal * seconds - (goal - mps) * lagS * share};
}

/** Pose and trail by dead reckoning; x is ahead at the start, y to the left, in metres. Pure. */
export class Path {
  /** @param {Motion} motion */
  constructor(motion) {
    this.motion = motion;
    this.x = this.y = this.heading = 0;
    /** Of the left and the right side. */
    this.speeds = [0, 0];
    /** The start first. @type {[number, number][]} */
    this.points = [[0, 0]];
    this.step = STEP_M;
    /** @type {Setpoint | null} */
    this.last = null;
  }

  clear() {
    Object.assign(this, new Path(this.motion));
  }

  /** Moves by the last setpoint until this one. @param {Setpoint} state */
  update(state) {
    const passedS = this.last ? (state.clock_us - this.last.clock_us) / 1e6 : 0;
    if (passedS < 0) this.clear();  // the car has restarted
    else if (this.last && passedS > 0) this.move(this.last, Math.min(passedS, LONGEST_S));
    this.last = state;
  }

  /** @param {Setpoint} setpoint @param {number} seconds */
  move({throttle, steer}, seconds) {
    const {guard, speeds: {least_mps: least}, turn} = this.motion;
    const circleM = this.motion.circle_m ?? CIRCLE_M;
    const sides = [throttle - steer * (turn ?? 0), throttle + steer * (turn ?? 0)];
    const most = Math.max(1, ...sides.map(Math.abs));
    const [left, right] = sides.map((side, index) => run(this.speeds[index],
      Math.sign(side) * (side && least + ((guard.top_mps - least) * Math.abs(side)) / most), guard, seconds));
    this.speeds = [left.end, right.end];
    const wayM = (left.wayM + right.wayM) / 2;
    const bend = turn === null ? (wayM * steer * 2) / circleM
      : turn && (right.wayM - left.wayM) / (turn * circleM);
    const chordM = bend ? (wayM * Math.sin(bend / 2)) / (bend / 2) : wayM;
    this.x += chordM * Math.cos(this.heading + bend / 2);
    this.y += chordM * Math.sin(this.heading + bend / 2);
    this.heading += bend;
    const [x, y] = this.points[this.points.length - 1];
    if (Math.hypot(this.x - x, this.y - y) >= this.step) this.points.push([this.x, this.y]);
    if (this.points.length <= POINTS) return;
    this.points = this.points.filter((_, index) => index % 2 === 0);
    this.step *= 2;
  }
}

/**
 * Middle and scale at which all points fit, and the length of the scale bar. Pure.
 * @param {[number, number][]} points @param {number} size of the drawing
 */
export function viewOf(points, size) {
  const edges = [0, 1].map((axis) => points.reduce(([low, high], {[axis]: value}) =>
    [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]));
  const span = Math.max(LEAST_SPAN_M, ...edges.map(([low, high]) => (high - low) * 1.2));
  const ten = 10 ** Math.floor(Math.log10(span / 2));
  const barM = ten * (span / 2 >= 5 * ten ? 5 : span / 2 >= 2 * ten ? 2 : 1);
  const [x, y] = edges.map(([low, high]) => (low + high) / 2);
  return {x, y, perM: size / span, barM};
}

export class PathMap {
  constructor() {
    this.path = new Path(USUAL);
    this.canvas = byId('path-canvas', HTMLCanvasElement);
    this.drawnMs = 0;
    void this.load();
  }

  /** Asks the car for its figures; without an answer the map is not to scale. */
  async load() {
    const answer = await fetch('api/motion').catch(() => null);
    if (answer?.ok) this.path = new Path(/** @type {Motion} */ (await answer.json()));
    setText(byId('path-scale'), this.path.motion.circle_m === null ? t.path.notToScale : t.path.toScale);
  }

  /** @param {import('../../lib/types.js').State} state */
  update(state) {
    this.path.update(state);
    const nowMs = performance.now();
    const size = this.canvas.clientWidth;
    if (nowMs - this.drawnMs < DRAW_MS || size === 0) return;
    this.drawnMs = nowMs;
    const pen = this.canvas.getContext('2d');
    if (pen) this.draw(pen, size);
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} size in CSS pixels */
  draw(pen, size) {
    const {points, x, y, heading, motion} = this.path;
    const view = viewOf([...points, [x, y]], size);
    /** @param {number} ahead @param {number} left @returns {[number, number]} */
    const at = (ahead, left) =>
      [size / 2 - (left - view.y) * view.perM, size / 2 - (ahead - view.x) * view.perM];
    this.canvas.width = this.canvas.height = size * devicePixelRatio;
    pen.scale(devicePixelRatio, devicePixelRatio);
    Object.assign(pen, {lineWidth: 2, strokeStyle: '#6fd0f5', fillStyle: '#fff', font: '600 12px system-ui'});
    pen.beginPath();
    for (const point of [...points, [x, y]]) pen.lineTo(...at(point[0], point[1]));
    pen.stroke();
    pen.strokeStyle = '#fff';
    pen.beginPath();
    pen.arc(...at(0, 0), 4, 0, 7);
    pen.stroke();
    if (motion.circle_m !== null) {
      pen.fillRect(4, size - 6, view.barM * view.perM, 2);
      pen.fillText(unit(view.barM, 'meter'), 4, size - 10);
    }
    pen.translate(...at(x, y));
    pen.rotate(-heading);
    pen.fill(new Path2D('M0-8 6 7 0 4-6 7Z'));
  }
}
