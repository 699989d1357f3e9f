/** The recorder's controls: a dot, on and off (a grown-up's), keep the last minute, a mark.
 * They load with the drawer, after the first screen. */

import {listed} from '../../lang/forms.js';
import {said, t} from '../../lang/words.js';
import {button, byId, make, setAttr, setText, show} from '../../lib/dom.js';
import {DRAWER_STRINGS} from './drawer-strings.js';
import {plain} from '../strings.js';
import {toast} from '../toast.js';

/** @import {Recording, State, Upward} from '../../lib/types.js' */

const MARK_MOST = 64;

/**
 * Tone and text for the recorder's state, and `news` if something has just happened. Pure.
 * @param {Recording} now
 * @param {Recording | null} before
 * @param {number} [bytesPerS] rate of the pictures, 0 if unknown
 * @param {boolean} [volatile] recordings are lost at power-off
 * @returns {{tone: 'on' | 'off' | 'bad', text: string, news: string, alarm: boolean}}
 */
export function recorderTexts(now, before, bytesPerS = 0, volatile = false) {
  const texts = t.recorder;
  const says = DRAWER_STRINGS.recorder;
  const fine = now.state === 'ok';
  const room = volatile ? texts.volatile : now.free_mb === null ? '' : says.room(now.free_mb, bytesPerS, now.station);
  const text = !fine ? says.bad(now.state)
    : listed([now.on ? says.on(clock(now.seconds)) : texts.off, room]);
  const broke = !fine && said(now.state) !== said(before?.state);
  const news = broke ? says.bad(now.state)
    : before && now.kept > before.kept ? texts.kept
      : before && fine && before.state !== 'ok' ? texts.again : '';
  return {tone: !fine ? 'bad' : now.on ? 'on' : 'off', text, news, alarm: broke};
}

/** 75 -> 1:15. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

export class RecorderPanel {
  /** @param {(message: Upward) => void} send */
  constructor(send) {
    const texts = t.recorder;
    this.send = send;
    /** @type {Recording | null} */
    this.last = null;
    /** Mean rate of the pictures, which the car records, too. */
    this.bytesPerS = 0;
    this.dot = make('span', '');
    this.dot.className = 'recording-dot';
    this.dot.dataset.testid = 'recording-dot';
    this.dot.setAttribute('role', 'img');
    button('gear').before(this.dot);
    this.box = document.createElement('div');
    this.box.dataset.testid = 'recorder';
    this.status = make('p', '');
    this.status.className = 'hint';
    this.status.dataset.testid = 'recorder-says';
    this.onOff = this.makeButton('record-on-off', texts.turnOn, () =>
      send({kind: 'record', on: !this.last?.on}));
    const keep = this.makeButton('record-keep', texts.keep, () => send({kind: 'keep'}));
    const row = make('div', '');
    row.className = 'row';
    row.append(this.onOff, keep);
    this.box.append(this.status, row, this.makeMarkForm());
    byId('menu-recordings').querySelector('h3')?.after(this.box);
  }

  /** @param {string} id @param {string} text @param {() => void} act */
  makeButton(id, text, act) {
    const element = document.createElement('button');
    element.dataset.testid = id;
    element.textContent = text;
    element.addEventListener('click', act);
    return element;
  }

  /** The form that marks a moment, with a word or without. */
  makeMarkForm() {
    const texts = t.recorder;
    const form = document.createElement('form');
    const field = document.createElement('input');
    const label = document.createElement('label');
    field.id = label.htmlFor = 'mark';
    field.maxLength = MARK_MOST;
    field.dataset.testid = 'mark';
    label.textContent = texts.markLabel;
    const go = document.createElement('button');
    go.textContent = texts.mark;
    go.dataset.testid = 'mark-go';
    form.append(label, field, go);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.send({kind: 'mark', text: plain(field.value).trim().slice(0, MARK_MOST)});
      field.value = '';
      toast(texts.marked);
    });
    return form;
  }

  /** Takes the rate of another second. @param {number} bytesPerS */
  rate(bytesPerS) {
    if (bytesPerS > 0) this.bytesPerS += (bytesPerS - this.bytesPerS) / (this.bytesPerS ? 20 : 1);
  }

  /** @param {State} state */
  update(state) {
    const now = state.recording ?? null;
    show(this.box, now !== null && state.may_drive);
    show(this.dot, now !== null);
    if (now === null) return;
    const {tone, text, news, alarm} = recorderTexts(now, this.last, this.bytesPerS,
      state.health?.faults.some(({key}) => key === 'card_volatile'));
    setAttr(this.dot, 'data-tone', tone);
    setAttr(this.dot, 'aria-label', t.recorder.tones[tone]);
    setAttr(this.dot, 'title', t.recorder.tones[tone]);
    setText(this.status, text);
    show(this.onOff, state.grown_up);
    setText(this.onOff, now.on ? t.recorder.turnOff : t.recorder.turnOn);
    if (news) toast(news, alarm ? 'warn' : 'calm');
    this.last = now;
  }
}
