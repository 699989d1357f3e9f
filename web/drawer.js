/** What comes after the first screen: the distances around the car, and the drawer: the
 * link in figures, the name, help, and the grown-ups' part. */

import {button, byId, drawing, input, make, mark, say, show} from './dom.js';
import {kept} from './memory.js';
import {Ranges} from './ranges.js';
import {sparkline} from './sparkline.js';
import {WORDS} from './strings.js';
import {Tilt} from './input/tilt.js';

const MINUTE = 60;

/**
 * @typedef {{fps: number, bitsPerS: number, dropped: number, path: string, size: string,
 *   pictureMs: number | null, linkMs: number | null}} Figures
 */

export class Drawer {
  /**
   * @param {{named: () => void, limit: (share: number) => void, take: () => void,
   *   code: () => void, intro: () => void, keys: () => void,
   *   tilt: (steer: number) => void}} parts
   */
  constructor(parts) {
    /** One a second. @type {(number | null)[]} */
    this.pictures = [];
    /** @type {(number | null)[]} */
    this.links = [];
    this.facts = byId('facts');
    this.limit = input('limit');
    this.ranges = new Ranges(drawing('ranges'));
    this.wire(parts);
    this.wireTilt(parts.tilt);
  }

  /** @param {ConstructorParameters<typeof Drawer>[0]} parts */
  wire(parts) {
    const name = input('name');
    name.value = kept.get('name');
    name.addEventListener('change', () => {
      kept.set('name', name.value.trim());
      parts.named();
    });
    const whole = input('whole');
    whole.checked = kept.get('whole') === 'yes';
    const fit = () => document.body.classList.toggle('whole', whole.checked);
    whole.addEventListener('change', () => {
      kept.set('whole', whole.checked ? 'yes' : '');
      fit();
    });
    this.limit.addEventListener('input', () => this.sayLimit());
    this.limit.addEventListener('change', () => parts.limit(Number(this.limit.value)));
    button('grown-take').addEventListener('click', parts.take);
    button('grown-code').addEventListener('click', parts.code);
    button('show-intro').addEventListener('click', parts.intro);
    button('show-keys').addEventListener('click', parts.keys);
  }

  /** @param {(steer: number) => void} set */
  wireTilt(set) {
    show(byId('tilt-row'), Tilt.available);
    const tilt = new Tilt(set);
    const box = input('tilt');
    box.addEventListener('change', async () => {
      if (!box.checked) tilt.stop();
      else box.checked = await tilt.start();
      show(button('tilt-centre'), tilt.on);
    });
    button('tilt-centre').addEventListener('click', () => tilt.centreHere());
  }

  sayLimit() {
    say(byId('limit-says'), WORDS.limit(Number(this.limit.value)));
    mark(this.limit, 'aria-valuetext', WORDS.limit(Number(this.limit.value)));
  }

  /** @param {import('./types.js').State} state */
  state(state) {
    this.ranges.update(state.ranges ?? []);
    show(byId('grown-open'), state.grown_up);
    show(byId('grown-locked'), !state.grown_up);
    if (document.activeElement !== this.limit) this.limit.value = String(state.limit);
    this.sayLimit();
    const who = state.driver === null ? WORDS.nobody : WORDS.drives(state.driver);
    say(byId('grown-driver'), `${who}; ${WORDS.watchers(state.viewers)}`);
    show(button('grown-take'), state.role !== 'driver');
  }

  /** Once a second. @param {Figures} figures @param {[string, string][]} more */
  second(figures, more) {
    for (const [row, value] of /** @type {const} */ ([
      [this.pictures, figures.pictureMs], [this.links, figures.linkMs],
    ])) {
      row.push(value);
      if (row.length > MINUTE) row.shift();
    }
    if (byId('menu').hidden) return;
    const high = Math.max(50, ...this.pictures.map(Number), ...this.links.map(Number));
    const box = {width: 300, height: 68, high};
    mark(drawing('minute-picture'), 'd', sparkline(this.pictures, MINUTE, box));
    mark(drawing('minute-link'), 'd', sparkline(this.links, MINUTE, box));
    say(byId('minute-top'), WORDS.upTo(high));
    const {details} = WORDS;
    /** @type {[string, string][]} */
    const rows = [
      [details.picture, WORDS.ms(figures.pictureMs)], [details.link, WORDS.ms(figures.linkMs)],
      [details.fps, figures.fps.toFixed(0)],
      [details.rate, WORDS.rate(figures.bitsPerS)],
      [details.dropped, String(figures.dropped)], [details.path, figures.path],
      [details.size, figures.size], ...more,
    ];
    this.facts.replaceChildren(...rows.flatMap(([name, value]) =>
      [make('dt', name), make('dd', value)]));
  }
}
