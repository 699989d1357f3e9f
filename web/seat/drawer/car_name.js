/** The car's name: asked for once, on the first driver's page, and a field in the menu. */

import {fill, t} from '../../lang/words.js';
import {button, byId, input, show} from '../../lib/dom.js';
import {saved} from '../../lib/storage.js';
import {plain} from '../strings.js';
import {toast} from '../toast.js';

/** @import {State, Upward, Welcome} from '../../lib/types.js' */
/** @import {Situation} from '../types.js' */

/** Situations that pass by themselves: the card stays. */
const PASSING = ['camera', 'late', 'lost'];

/**
 * Is the page to ask for a name? Only at the wheel of a car at rest, before the first drive, and
 * on while a person types. Pure.
 * @param {{named: boolean, situation: Situation, drove: boolean, later: boolean, asking: boolean,
 *   focused: boolean}} page
 */
export const asksName = ({named, situation, drove, later, asking, focused}) =>
  (asking && focused) || (!named && !drove && !later &&
  (situation.kind === 'ready' ? !situation.letGo : asking && PASSING.includes(situation.kind)));

/** @param {() => number} [random] from 0 to 1 */
export function suggestedCarName(random = Math.random) {
  const {carNames} = t;
  const names = carNames.split(' ');
  return names[Math.floor(random() * names.length)];
}

/** The name as the car takes it, '' if nothing of it can be seen. Pure. @param {string} typed */
export const tidyName = (typed) => plain(typed).trim().replace(/\s+/g, ' ');

export class CarName {
  /** @param {{send: (message: Upward) => boolean}} parts */
  constructor({send}) {
    this.send = send;
    this.card = byId('naming');
    this.field = input('car-name');
    /** @type {Welcome | null} */
    this.welcome = null;
    this.later = saved.get('naming') === 'later';
    const first = input('naming-name');
    first.value = suggestedCarName();
    byId('naming-form').addEventListener('submit', (event) => {
      event.preventDefault();
      first.value = this.tell(first.value) || suggestedCarName();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    });
    button('naming-later').addEventListener('click', () => {
      saved.set('naming', 'later');
      this.later = true;
      show(this.card, false);
    });
    this.field.addEventListener('change', () => {
      this.field.value = this.tell(this.field.value) || this.welcome?.car || '';
    });
  }

  /** Sends a name unless it is empty; returns it. @param {string} typed */
  tell(typed) {
    const name = tidyName(typed);
    if (name && (name !== this.welcome?.car || !this.welcome.named)) this.send({kind: 'car_name', name});
    return name;
  }

  /** A new link, or a new name. @param {Welcome} welcome */
  welcomed(welcome) {
    if (this.welcome && this.welcome.car !== welcome.car) toast(fill(t.carNamed, {name: welcome.car}));
    this.welcome = welcome;
    if (document.activeElement !== this.field) this.field.value = welcome.car;
  }

  /** Ten times a second. @param {Situation} situation @param {State | null} state @param {boolean} drove */
  update(situation, state, drove) {
    const named = this.welcome?.named !== false;
    const focused = this.card.contains(document.activeElement);
    show(this.card, asksName({named, situation, drove, later: this.later, asking: !this.card.hidden, focused}));
    show(byId('car-naming'), document.activeElement === this.field ||
      state?.grown_up === true || (!named && state?.may_drive === true));
  }
}
