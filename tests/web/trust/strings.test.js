// The steps that a browser shows first, by its system.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import '../english.js';
import {SYSTEMS, grouped, systemOf} from '../../../web/trust/strings.js';

const AGENTS = {
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Safari/604.1': 'iPhone, iPad',
  'Mozilla/5.0 (Linux; Android 15; Pixel 8) Chrome/130.0 Mobile Safari/537.36': 'Android',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/130.0 Safari/537.36': 'Windows',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.1 Safari/605.1.15': 'macOS',
  'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0': 'Linux',
};

test('systems are recognised by the user agent', () => {
  for (const [agent, name] of Object.entries(AGENTS)) {
    assert.equal(SYSTEMS[systemOf(agent, 0)].name, name);
  }
  assert.equal(systemOf('curl/8', 0), -1);
});

test('iPad is recognised by its touch points despite a Macintosh user agent', () => {
  const [, , , mac] = Object.keys(AGENTS);
  assert.equal(SYSTEMS[systemOf(mac, 5)].name, 'iPhone, iPad');
});

test('fingerprint is grouped in pairs', () => {
  assert.equal(grouped('9f86d0'), '9F:86:D0');
  assert.equal(grouped(''), '');
});
