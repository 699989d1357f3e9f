/** The list of permitted drivers, for grown-ups: "Remove" for each, which can be undone for 5 s,
 * "Invite a driver", "Lock again". */

import {t, fill, said} from '../../lang/words.js';
import {make, setAttr, setText} from '../../lib/dom.js';
import {PEOPLE_STRINGS} from './people-strings.js';
import {personName} from '../strings.js';

/** @import {Person, Text, Upward} from '../../lib/types.js' */

const AGAIN_S = 2;
const UNDO_MS = 5000;

export class PeopleList {
  /** @param {HTMLElement} element @param {(message: Upward) => boolean} send
   * @param {import('../hud/panels.js').Panels} panels */
  constructor(element, send, panels) {
    this.send = send;
    /** @type {Person[]} */
    this.people = [];
    /** Times at which people are removed, by their id. @type {Map<string, number>} */
    this.ending = new Map();
    // A page that goes away has no timers: its removals are sent now.
    document.addEventListener('visibilitychange', () => document.hidden && this.end(Infinity));
    this.list = make('ul', '');
    this.list.className = 'people';
    this.unsaved = make('p', '');
    this.unsaved.id = 'who-unsaved';
    this.unsaved.className = 'fault';
    this.unsaved.hidden = true;
    const lock = make('button', t.people.lock);
    lock.id = 'lock-again';
    lock.addEventListener('click', () => {
      this.end(Infinity);
      send({kind: 'lock'});
    });
    const invite = make('button', t.people.invite);
    invite.id = 'invite';
    invite.addEventListener('click', async () =>
      (await import('./invite.js')).open(panels.sheet(t.invite.title, 'invitation')));
    const row = make('div', '');
    row.className = 'row';
    row.append(lock, invite);
    this.title = make('h3', t.people.title);
    this.title.hidden = true; // until the list arrives
    element.replaceChildren(this.title, this.list, this.unsaved, row);
    this.seconds = 0;
    this.shown = '';
  }

  /** Requests the list every AGAIN_S seconds. @param {boolean} visible to a grown-up */
  second(visible) {
    this.end(performance.now());
    if (visible && this.seconds % AGAIN_S === 0) this.send({kind: 'who'});
    this.seconds = visible ? this.seconds + 1 : 0;
  }

  /** Sends the removals that are due; without a link later. @param {number} nowMs */
  end(nowMs) {
    for (const [id, atMs] of this.ending) {
      if (atMs <= nowMs && this.send({kind: 'end', id})) this.remove(id, false);
    }
  }

  /** Removes a person in 5 s, or takes that back. @param {string} id @param {boolean} on */
  remove(id, on) {
    if (on) this.ending.set(id, performance.now() + UNDO_MS);
    else this.ending.delete(id);
    this.show();
  }

  /** @param {Person[]} people @param {Text | null} [unsaved] why the car cannot save the list */
  update(people, unsaved = null) {
    this.people = people;
    this.title.hidden = false;
    this.unsaved.hidden = unsaved === null;
    setText(this.unsaved, unsaved ? fill(t.people.unsaved, {reason: said(unsaved)}) : '');
    this.show();
  }

  show() {
    const rows = this.people.map((person) => ({person, says: PEOPLE_STRINGS.describe(person)}));
    const shown = JSON.stringify(rows.map(({person, says}) =>
      [person.id, person.name, says, this.ending.has(person.id)]));
    if (shown === this.shown) return; // else a finger would lose the button below it
    this.shown = shown;
    this.list.replaceChildren(...rows.map(({person, says}) => this.row(person, says)));
  }

  /** @param {Person} person @param {string} says */
  row(person, says) {
    const row = make('li', '');
    const label = make('span', '');
    const ends = this.ending.has(person.id);
    label.append(make('b', personName(person.name)), ` ${ends ? t.people.ending : says}`);
    row.append(label);
    if (!person.you && (!person.watches || ends)) {
      const end = make('button', ends ? t.people.undo : t.people.end);
      end.className = ends ? 'undo' : 'end';
      setAttr(end, 'aria-label', PEOPLE_STRINGS[ends ? 'undoOf' : 'endOf'](personName(person.name)));
      end.addEventListener('click', () => this.remove(person.id, !ends));
      row.append(end);
    }
    return row;
  }
}
