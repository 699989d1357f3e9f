// The folders of web/: allowed imports, and the files named in markup.

import assert from 'node:assert/strict';
import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {posix} from 'node:path';
import {test} from 'node:test';

const ROOT = new URL('../../../web/', import.meta.url);
/** Folders that a folder may import besides itself. @type {Record<string, string[]>} */
const BELOW = {
  lang: [], lib: ['lang'], video: ['lib'], calibration: ['lib', 'lang'],
  seat: ['lib', 'lang', 'video', 'calibration'], buttons: ['lib', 'lang', 'video'],
  recordings: ['lib', 'lang', 'video'], network: ['lib', 'lang'], start: ['lib', 'lang'], trust: ['lib', 'lang'],
  hil: ['lib', 'lang', 'video', 'seat'], sites: ['lib', 'lang', 'network'],
};

/** @param {string} name */
const text = (name) => readFileSync(new URL(name, ROOT), 'utf8');
const everything = /** @type {string[]} */ (readdirSync(ROOT, {recursive: true}));
/** Each import of web/, for the type checker too. @type {{from: string, to: string}[]} */
const imports = everything.filter((name) => name.endsWith('.js')).flatMap((from) =>
  [...text(from).matchAll(/(?:from |import\()['`](\.[^'`$]*)/g)].map(([, path]) =>
    ({from, to: posix.join(posix.dirname(from), path)})));
/** @param {string} path */
const folder = (path) => path.split('/')[0];

test('folder imports only from allowed folders', () => {
  assert.ok(imports.length > 150);
  for (const {from, to} of imports) {
    const allowed = [folder(from), ...BELOW[folder(from)]];
    assert.ok(allowed.includes(folder(to)), `${from} imports ${to}`);
  }
});

test('lib/ has only modules that several folders use', () => {
  for (const name of everything.filter((one) => /^lib\/.+\.js$/.test(one))) {
    const users = new Set(imports.filter(({to}) => to === name).map(({from}) => folder(from)));
    users.delete('lib');
    assert.ok(users.size > 1, `${name} is used by ${[...users]}`);
  }
});

test('files named in markup exist', () => {
  for (const page of everything.filter((name) => name.endsWith('.html'))) {
    for (const [, name] of text(page).matchAll(/(?:href|src)="(?!api\/)([^"#]+\.\w+)"/g)) {
      assert.ok(existsSync(new URL(name, ROOT)), `${page} names ${name}`);
    }
  }
});
