// Spoken warnings: which messages of the card are spoken, and when they end.

import assert from 'node:assert/strict';
import {test} from 'node:test';

class FakeElement {
  textContent = '';
}
const said = new FakeElement();
/** @type {string[]} */
const heard = [];
let change = () => {};
const body = {dataset: {situation: ''}};
Object.assign(globalThis, {
  HTMLElement: FakeElement,
  document: {getElementById: () => said, body, documentElement: {lang: 'en'}},
  MutationObserver: class {
    /** @param {() => void} act */
    constructor(act) {
      this.act = act;
    }

    observe() {
      change = this.act;
    }

    disconnect() {
      change = () => {};
    }
  },
  SpeechSynthesisUtterance: class {
    /** @param {string} text */
    constructor(text) {
      this.text = text;
    }
  },
  speechSynthesis: {
    cancel: () => heard.push('-'),
    speak: (/** @type {{text: string, lang: string}} */ {text, lang}) => heard.push(`${lang}: ${text}`),
  },
});
const {speakWarnings} = await import('../../../web/seat/hud/voice.js');

/** @param {string} situation @param {string} text */
function shown(situation, text) {
  body.dataset.situation = situation;
  said.textContent = text;
  heard.length = 0;
  change();
  return heard.join(' ');
}

test('stops, lost links and a low battery are spoken once switched on', () => {
  assert.equal(shown('stopped', 'Stopped. Ann pressed STOP.'), '', 'off at first');
  speakWarnings(true);
  assert.match(shown('stopped', 'Stopped. Ann pressed STOP.'), /^- en\S*: Stopped\. Ann pressed STOP\.$/);
  assert.match(shown('lost', 'Link lost.'), /Link lost\.$/);
  assert.match(shown('battery', 'Battery low.'), /Battery low\.$/);
  assert.equal(shown('driving', ''), '-', 'a message that is gone ends');
  assert.equal(shown('watching', 'Ann drives.'), '-');
  speakWarnings(false);
  assert.equal(shown('lost', 'Link lost.'), '');
});
