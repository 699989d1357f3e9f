/** The list of permitted drivers, for grown-ups: "End" for each, "Invite a driver", "Lock
 * again". */

import {t, fill} from '../../lang/words.js';
import {make, setAttr, setText} from '../../lib/dom.js';
import {PEOPLE_STRINGS} from './people-strings.js';
import {personName} from '../strings.js';
import './drawer-wire.js';

/** @import {Person, Upward} from '../../lib/types.js' */

const AGAIN_S = 2;

export class PeopleList {
  /** @param {HTMLElement} element @param {(message: Upward) => void} send */
  constructor(element, send) {
    this.send = send;
    this.list = make('ul', '');
    this.list.className = 'people';
    this.unsaved = make('p', '');
    this.unsaved.id = 'who-unsaved';
    this.unsaved.className = 'fault';
    this.unsaved.hidden = true;
    const lock = make('button', t.people.lock);
    lock.id = 'lock-again';
    lock.addEventListener('click', () => send({kind: 'lock'}));
    const invite = make('button', t.people.invite);
    invite.id = 'invite';
    const invitation = make('div', '');
    invitation.id = 'invitation';
    invite.addEventListener('click', async () =>
      (await import('./invite.js')).open(invitation));
    const row = make('div', '');
    row.className = 'row';
    row.append(lock, invite);
    element.replaceChildren(make('h4', t.people.title), this.list, this.unsaved, row, invitation);
    this.seconds = 0;
    this.shown = '';
  }

  /** Requests the list every AGAIN_S seconds. @param {boolean} visible to a grown-up */
  second(visible) {
    if (visible && this.seconds % AGAIN_S === 0) this.send({kind: 'who'});
    this.seconds = visible ? this.seconds + 1 : 0;
  }

  /** @param {Person[]} people @param {string} [unsaved] why the car cannot save the list */
  update(people, unsaved = '') {
    this.unsaved.hidden = unsaved === '';
    setText(this.unsaved, unsaved && fill(t.people.unsaved, {reason: unsaved}));
    const rows = people.map((person) => ({person, says: PEOPLE_STRINGS.describe(person)}));
    const shown = JSON.stringify(rows.map(({person, says}) => [person.id, person.name, says]));
    if (shown === this.shown) return; // else a finger would lose the button below it
    this.shown = shown;
    this.list.replaceChildren(...rows.map(({person, says}) => this.row(person, says)));
  }

  /** @param {Person} person @param {string} says */
  row(person, says) {
    const row = make('li', '');
    const label = make('span', '');
    label.append(make('b', personName(person.name)), ` ${says}`);
    row.append(label);
    if (!person.you && !person.watches) {
      const end = make('button', t.people.end);
      setAttr(end, 'aria-label', PEOPLE_STRINGS.endOf(personName(person.name)));
      end.addEventListener('click', () => this.send({kind: 'end', id: person.id}));
      row.append(end);
    }
    return row;
  }
}
