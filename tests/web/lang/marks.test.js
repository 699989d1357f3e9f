// Punctuation between values on a page in Chinese.

import assert from 'node:assert/strict';
import {test} from 'node:test';

Object.assign(globalThis, {document: {documentElement: {lang: 'zh'}}});
const {ago, clauses, listed, titled} = await import('../../../web/lang/forms.js');
const {joined, unit} = await import('../../../web/lang/words.js');

test('Chinese has its own marks between values, and a space before a unit', () => {
  assert.equal(listed(['主板', '', '系统'], '、'), '主板、系统');
  assert.equal(listed(['已录像', '还能存']), '已录像，还能存');
  assert.equal(titled('前', clauses(['热', '满'])), '前：热；满');
  assert.equal(joined('停。', '走。'), '停。走。');
  assert.equal(unit(0.42, 'meter', 2), '0.42\u00a0米');
  assert.equal(ago(7200), '2\u00a0小时前');
});
