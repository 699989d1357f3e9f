// The recorder's line on the page: its state, and each change once.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {textOf} from '../english.js';
import {clock, recorderTexts} from '../../../web/seat/drawer/recorder.js';

/** @import {Recording} from '../../../web/lib/types.js' */

/** @param {Partial<Recording>} more @returns {Recording} */
const recording = (more = {}) => ({
  on: true, state: 'ok', seconds: 75.9, free_mb: 11_200, kept: 0, dropped: 0, station: false, ...more,
});

test('recording line shows its duration and the remaining room', () => {
  const said = recorderTexts(recording(), null);
  assert.deepEqual(said, {
    tone: 'on', news: '', alarm: false,
    text: 'Recording for 1:15, room for 11.2\u00a0GB more, then the oldest drives are deleted',
  });
  assert.match(recorderTexts(recording({station: true, free_mb: 0}), null).text,
    /, room for 0\u00a0MB more, then recording stops$/);
  assert.match(recorderTexts(recording(), null, 350_000).text, /, room for 8\u00a0hours more, then/);
  assert.match(recorderTexts(recording({free_mb: 900}), null, 350_000).text, /, room for 42\u00a0minutes more, then/);
  assert.equal(recorderTexts(recording({free_mb: null}), null).text, 'Recording for 1:15');
  assert.equal(recorderTexts(recording(), null, 0, true).text, 'Recording for 1:15, not kept after power-off');
  assert.deepEqual([0, 59.99, 60, 3661, -5].map(clock), ['0:00', '0:59', '1:00', '61:01', '0:00']);
});

test('recorder that is off is no fault, and the last minute can be kept', () => {
  const said = recorderTexts(recording({on: false, free_mb: 950}), recording());
  assert.equal(said.tone, 'off');
  assert.match(said.text, /^Not recording; you can still save the last minute, room for 950\u00a0MB/);
  assert.equal(said.news, '');
});

test('recorder fault is announced once, and so is its end', () => {
  const bad = recording({state: textOf('Read-only file system')});
  const first = recorderTexts(bad, recording());
  assert.equal(first.tone, 'bad');
  assert.equal(first.text, 'Recording failed: Read-only file system. You can still drive.');
  assert.deepEqual([first.news, first.alarm], [first.text, true]);
  assert.equal(recorderTexts(bad, bad).news, '');
  assert.equal(recorderTexts(bad, null).alarm, true, 'it was so when the page came');
  assert.equal(recorderTexts(recording(), bad).news, 'Recording again.');
});

test('kept minute is announced on all pages', () => {
  assert.equal(recorderTexts(recording({kept: 2}), recording({kept: 1})).news,
    'The last minute is saved.');
  assert.equal(recorderTexts(recording({kept: 2}), null).news, '', 'not when it was before');
});
