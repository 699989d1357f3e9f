/** What passes for "who may drive"; part of the wire once the drawer is loaded. */

import {DOWN, UP, any, flag, list, maybe, text, words} from '../lib/wire.js';

const PERSON = {
  id: words, name: words, where: words, grown_up: flag, drives: flag, you: flag,
  away_s: maybe(any), left_s: maybe(any), watches: maybe(flag),
};

Object.assign(UP, {lock: {}, who: {}, end: {id: text(64, /^[A-Za-z0-9-]{8,}$/)}});
Object.assign(DOWN, {people: {people: list(PERSON)}});
