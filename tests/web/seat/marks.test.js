// The picture as a file, and a mark: the file's name, and the reasons for a missing mark.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {fileName, markRefusal} from '../../../web/seat/drawer/marks.js';

const CAPTURED = Date.UTC(2026, 10, 23, 9, 5, 7, 250);

test('picture file is named by car and capture time, like the recordings', () => {
  assert.equal(fileName('Plague', CAPTURED), 'Plague-20261123T090507Z.jpg');
  assert.equal(fileName('Zoë’s car / 2', CAPTURED), 'Zoë-s-car-2-20261123T090507Z.jpg');
  assert.equal(fileName('../..', CAPTURED), 'car-20261123T090507Z.jpg');
});

test('reasons for a missing mark are shown', () => {
  const state = /** @type {any} */ ({may_drive: true, recording: {on: true}});
  assert.equal(markRefusal(state), '');
  assert.match(markRefusal(null), /no link/);
  assert.match(markRefusal({...state, recording: null}), /does not record/);
  assert.match(markRefusal({...state, may_drive: false}), /code/);
});
