/** Parts loaded after the first screen: distances around the car, the offer of https, and
 * the drawer with the link in figures, the name, help, and the grown-ups' part. */

import {listed} from '../../lang/forms.js';
import {loadTexts, number, said, t} from '../../lang/words.js';
import {Awake} from '../../lib/awake.js';
import {
  button, byId, drawing, fillRows, fillStrings, input, make, setAttr, setText, show,
} from '../../lib/dom.js';
import {saved} from '../../lib/storage.js';
import {App} from './app.js';
import {Asking} from '../hud/asking.js';
import {Beeps, behindM, rhythm} from '../hud/beeps.js';
import {CarName} from './car_name.js';
import {DRAWER_STRINGS, computerFaults, computerText, healthRows, servosText} from './drawer-strings.js';
import {Help, fillKeys} from './help.js';
import {IntercomSwitch} from '../intercom/switch.js';
import {Tilt} from '../input/tilt.js';
import {LinkHistory, spark} from '../link/link_history.js';
import {MarkButtons} from './marks.js';
import {ownName} from './own_name.js';
import {Panels, Tabs} from '../hud/panels.js';
import {PictureNotes, PictureSettings} from './picture-settings.js';
import {Ranges, rangeFaults, setStale} from '../hud/ranges.js';
import {RecorderPanel} from './recorder.js';
import {Secure} from './secure.js';
import {STRINGS} from '../strings.js';
import {toast} from '../toast.js';
import {Unlock} from './unlock.js';
import {PeopleList} from './people.js';

/** @import {State, Upward, Welcome} from '../../lib/types.js' */

const TOAST_AGAIN_MS = 60_000;
const PRESETS_AGAIN_MS = 1000;
const ANSWER_MS = 500;

/** Controls of settings: `data-setting` is the kind of their message, `name` its field. */
const controls = () => /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll('[data-setting]'));

/** Loads texts, style and markup. Throws TypeError if they do not arrive. */
export async function loadMarkup() {
  const [style, markup] = await Promise.all([
    textOf('drawer.css'), textOf('drawer.html'), loadTexts('drawer'),
  ]);
  return [style, markup];
}

/** Puts style and markup into the page. @param {string[]} texts */
export function addMarkup([style, markup]) {
  const template = document.createElement('template');
  template.innerHTML = markup;
  fillStrings(template.content, t);
  document.body.append(make('style', style));  // behind the seat's style
  byId('notes').prepend(...template.content.querySelectorAll('aside'));
  byId('toasts').before(...template.content.querySelectorAll('.asking, .path-map'));
  document.body.append(...template.content.querySelectorAll('.panel'));
}

/** The text of a file beside this module. @param {string} name */
async function textOf(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new TypeError(`${name}: ${answer.status}`);
  return answer.text();
}

/**
 * @typedef {import('../link/pace.js').Counts & {fps: number, bitsPerS: number, dropped: number,
 *   path: 'webcodecs' | 'mse' | 'none', software: boolean, size: string, version: string, way: 'near' | 'tunnel' | 'proxy',
 *   pictureMs: number | null, linkMs: number | null,
 *   grade: import('../types.js').LinkGrade}} Figures
 */

export class Drawer {
  /**
   * @param {{take: () => void,
   *   given: () => void, keysBusy: () => boolean,
   *   hud: import('../hud/hud.js').Hud, controls: import('../input/controls.js').Controls,
   *   reversing: () => boolean,
   *   send: (message: Upward) => boolean, video: import('../../video/video.js').Video,
   *   link: import('../link/link.js').Link, tilt: (steer: number) => void}} parts
   */
  constructor(parts) {
    this.notes = new PictureNotes(() => parts.video);
    this.linkHistory = new LinkHistory();
    this.limit = input('limit');
    /** A grown-up's choice of guard mode. */
    this.guard = byId('guard', HTMLSelectElement);
    /** Time of this page's last change: states from before the car's answer are older. */
    this.setMs = -Infinity;
    this.beeping = input('beeps');
    this.ranges = new Ranges(drawing('ranges'));
    this.faults = byId('sensor-faults');
    this.shownFaults = '';
    this.beeps = new Beeps();
    this.reversing = parts.reversing;
    this.setLimit = (/** @type {number} */ throttle) => void parts.send({kind: 'limit', throttle});
    this.markPreset = (/** @type {number} */ _) => {};
    /** @type {State | null} */
    this.last = null;
    /** @type {import('../../calibration/panel.js').Calibration | undefined} */
    this.calibration = undefined;
    /** @type {HTMLImageElement | null} */
    this.depth = null;
    /** When each kind of fault was last toasted. @type {Map<string, number>} */
    this.toastedMs = new Map();
    this.panels = new Panels(['menu', 'unlock', 'keys', 'sheet', 'figures']);
    this.tabs = new Tabs();
    parts.hud.spark = spark();
    this.help = new Help();
    this.unlock = new Unlock({panels: this.panels, send: (code) => parts.send({kind: 'unlock', code})});
    this.people = new PeopleList(byId('who-may-drive'), parts.send, this.panels);
    this.tellName = ownName(parts.send);
    this.carName = new CarName(parts);
    this.intercom = new IntercomSwitch(parts);
    this.asking = new Asking(parts);
    this.listen(parts);
    this.picture = new PictureSettings(byId('picture-settings'), parts.send);
    this.recorder = new RecorderPanel(parts.send);
    this.marks = new MarkButtons(parts);
    this.secure = new Secure();
    this.app = new App();
    this.awake = new Awake({
      playing: () => parts.video.path?.name === 'mse',
      changed: (how) => (how === 'none' && matchMedia('(pointer: coarse)').matches
        ? toast(t.maySleep, 'warn') : undefined),
    });
    this.listenTilt(parts.tilt);
  }

  /** @param {ConstructorParameters<typeof Drawer>[0]} parts */
  listen(parts) {
    const whole = input('whole');
    whole.checked = saved.get('whole') === 'yes';
    whole.addEventListener('change', () => {
      saved.set('whole', whole.checked ? 'yes' : '');
      document.body.classList.toggle('whole', whole.checked);
    });
    this.limit.addEventListener('input', () => this.showLimit());
    for (const control of controls()) {
      control.addEventListener('change', () => {
        this.setMs = performance.now();
        const value = control.type === 'checkbox' ? control.checked
          : control.type === 'range' ? Number(control.value) : control.value;
        parts.send(/** @type {Upward} */ (/** @type {unknown} */ ({kind: control.dataset.setting, [control.name]: value})));
      });
    }
    button('grown-take').addEventListener('click', parts.take);
    button('grown-code').addEventListener('click', () => this.unlock.open());
    button('show-intro').addEventListener('click', () => {
      this.panels.closeAll();
      this.help.again();
    });
    button('show-keys').addEventListener('click', () => this.panels.open('keys', byId('keys-title', HTMLElement)));
    button('show-sticks').addEventListener('click', async () =>
      (await import('../../calibration/sticks.js')).open(this.panels.sheet(t.showSticks, 'sticks')));
    button('show-figures').addEventListener('click', () => this.panels.open('figures', byId('figures-title', HTMLElement)));
    const asks = button('look-for-faults');
    asks.addEventListener('click', async () =>
      (await import('./doctor.js')).showReport(asks, this.panels.sheet(t.lookForFaults, 'doctor')));
    button('calibrate').addEventListener('click', () => this.calibrate(parts));
    // On unless switched off.
    this.beeping.checked = saved.get('beeps') !== 'no';
    this.beeping.addEventListener('change', () => saved.set('beeps', this.beeping.checked ? '' : 'no'));
    this.offerVoice();
  }

  /** Opens the calibration, which loads now. @param {ConstructorParameters<typeof Drawer>[0]} parts */
  async calibrate({controls, take}) {
    const [{Calibration}] = await Promise.all([
      import('../../calibration/panel.js'), loadTexts('calibration'),
    ]);
    const place = this.panels.sheet(t.calibrate, 'calibration');
    this.calibration ??= new Calibration({
      set: (wish) => controls.set('calibration', wish), releases: controls.releases, take,
      driving: () => this.last?.role === 'driver', kept: () => void this.loadPresets(),
    });
    await this.calibration.openIn(place);
  }

  /** @param {(steer: number) => void} set */
  listenTilt(set) {
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

  /** The top speeds, from the car's data; the slider remains without an answer. The
   * cookie that a code gives may still be on its way. */
  async loadPresets(tries = 3) {
    try {
      this.markPreset = await (await import('../../calibration/presets.js')).open(byId('presets'), this.setLimit);
    } catch {
      if (tries > 1) setTimeout(() => this.loadPresets(tries - 1), PRESETS_AGAIN_MS);
    }
  }

  showLimit() {
    setText(byId('limit-says'), DRAWER_STRINGS.limit(Number(this.limit.value)));
    setAttr(this.limit, 'aria-valuetext', DRAWER_STRINGS.limit(Number(this.limit.value)));
  }

  /** Opens the menu, at a tab or at the last one; a second push closes it. @param {string} tab an id or '' */
  toggle(tab) {
    const open = this.panels.isOpen('menu');
    if (open && (!tab || tab === this.tabs.chosen.id)) {
      this.panels.close('menu');
      return;
    }
    if (!open) this.panels.open('menu', byId('menu', HTMLElement));
    if (tab) this.tabs.select(tab);
  }

  /** Driving began. */
  used() {
    this.help.done();
    this.secure.hide();
  }

  /** @param {Welcome} welcome */
  welcomed(welcome) {
    this.unlock.welcomed();
    this.tellName();
    this.carName.welcomed(welcome);
    if (welcome.unguarded) toast(t.hudUnguarded, 'warn');
    this.intercom.welcomed(welcome);
    this.secure.offer(welcome.https_port);
    fillKeys(welcome);
    setStale(welcome.range_stale_ms);
    this.marks.car = welcome.car;
  }

  /** @param {State} state */
  state(state) {
    const ranges = state.ranges ?? [];
    this.ranges.update(state);
    this.listFaults(rangeFaults(ranges));
    this.recorder.update(state);
    this.marks.update(state);
    this.showSettings(state);
    this.picture.update(state);
    this.notes.update(state);
    this.asking.update(state);
    this.intercom.update(state);
    const back = this.beeping.checked && this.reversing();
    this.beeps.update(back ? rhythm(behindM(ranges), state.guard?.stop_m ?? 0) : null);
    this.toastFaults(faultsOf(state), faultsOf(this.last));
    this.last = state;
    fillRows(byId('car-facts'), this.carRows(state));
    this.guard.disabled = ranges.length === 0;
    if (state.grown_up && byId('grown-open').hidden) void this.loadPresets();
    show(byId('grown-open'), state.grown_up);
    show(byId('grown-locked'), !state.grown_up);
    show(byId('car-care'), state.grown_up);
    this.showLimit();
    this.markPreset(state.limit);
    const who = state.role === 'driver' ? t.you
      : state.driver === null ? t.nobody : STRINGS.drives(state.driver);
    setText(byId('grown-driver'), listed([who, DRAWER_STRINGS.watchers(state.viewers)]));
    show(button('grown-take'), state.role !== 'driver');
  }

  /** Shows the settings of the car, but not in a control that somebody uses now. @param {State} state */
  showSettings({limit, guard, parts, settings}) {
    if (performance.now() - this.setMs < ANSWER_MS) return;
    const now = /** @type {Record<string, unknown>} */ (
      {limit, guard: guard?.mode ?? 'off', intercom: parts?.intercom?.on === true, ...settings});
    for (const control of controls()) {
      const value = now[control.dataset.setting ?? ''];
      if (typeof value === 'boolean') control.checked = value;
      else if (value !== undefined && document.activeElement !== control) control.value = String(value);
    }
  }

  /** The switch of spoken warnings, off at first, where the browser can speak. */
  offerVoice() {
    const voice = input('voice');
    const apply = async () => (await import('../hud/voice.js')).speakWarnings(voice.checked);
    show(byId('voice-row'), 'speechSynthesis' in window);
    voice.checked = saved.get('voice') === 'yes';
    if (voice.checked) void apply();
    voice.addEventListener('change', () => {
      saved.set('voice', voice.checked ? 'yes' : '');
      void apply();
    });
  }

  /** Lists the range sensors that measure nothing. @param {string[]} lines */
  listFaults(lines) {
    show(this.faults, lines.length > 0);
    if (lines.join() === this.shownFaults) return;
    this.shownFaults = lines.join();
    this.faults.replaceChildren(...lines.map((line) => make('li', line)));
  }

  /**
   * Toasts new faults of the car's computer, each once a minute at most: their figures
   * change, and a weak Wi-Fi comes and goes.
   * @param {string[]} now @param {string[]} before
   */
  toastFaults(now, before) {
    /** @param {string} fault */
    const kind = (fault) => fault.replace(/[-\d.,]+/g, '');
    const known = before.map(kind);
    const nowMs = performance.now();
    for (const fault of now) {
      const lastMs = this.toastedMs.get(kind(fault)) ?? -Infinity;
      if (known.includes(kind(fault)) || nowMs - lastMs < TOAST_AGAIN_MS) continue;
      this.toastedMs.set(kind(fault), nowMs);
      toast(DRAWER_STRINGS.fault(fault), 'warn');
    }
  }

  /** Reports the last second to the car, and shows it. @param {import('../view.js').Page} page */
  report(page) {
    const {link, video} = page.parts;
    const bitsPerS = this.notes.bitsPerS();
    this.recorder.rate(bitsPerS / 8);
    const path = video.path?.name ?? 'none';
    const pictureMs = video.count.shown > 0 ? video.pictureMs : null;
    const fps = video.fps(performance.now());
    // With a clock that is a little off, latency may come out negative.
    const notNegativeMs = pictureMs === null ? null : Math.max(0, pictureMs);
    link.send({
      kind: 'report', path, picture_ms: notNegativeMs, link_ms: page.linkMs,
      fps, dropped: video.count.dropped,
    });
    this.second({
      fps, bitsPerS, ...video.count, path, software: video.path?.software === true,
      pictureMs, grade: page.grade, linkMs: page.linkMs, size: video.size.join('×'),
      version: page.welcome?.version ?? '', way: page.welcome?.way ?? 'near',
    });
  }

  /** Takes the figures of another second. @param {Figures} figures */
  second(figures) {
    this.linkHistory.second(figures.pictureMs, figures.linkMs, this.last?.lost ?? null);
    this.notes.second(figures);
    this.people.second(!byId('menu').hidden && this.last?.grown_up === true);
    const says = STRINGS.chip(figures.grade, figures.pictureMs, figures.linkMs);
    setText(byId('link-says'), figures.way === 'near' ? says : `${says} · ${t.ways[figures.way]}`);
    if (byId('figures').hidden) return;
    this.linkHistory.draw();
    fillRows(byId('facts'), this.figureRows(figures));
    this.showDepth();
  }

  /** Rows for engineers. @param {Figures} figures @returns {[string, string][]} */
  figureRows(figures) {
    const {details} = t;
    const health = this.last?.health;
    return [
      [details.picture, STRINGS.ms(figures.pictureMs)], [details.link, STRINGS.ms(figures.linkMs)],
      [details.way, t.ways[figures.way]],
      [details.fps, number(figures.fps)],
      [details.lost, DRAWER_STRINGS.share(this.last?.lost ?? null)],
      [details.rate, DRAWER_STRINGS.rate(figures.bitsPerS)],
      [details.dropped, number(figures.dropped)],
      [details.path, DRAWER_STRINGS.path(figures.path, figures.software)],
      [details.size, figures.size], [details.pages, number(this.last?.viewers ?? 0)],
      [details.wheels, said(this.last?.wheels) || 'ok'], [details.car, figures.version],
      ...(health ? healthRows(health) : []),
    ];
  }

  /** Shows the depth camera's last picture, once a second while the figures are open. */
  showDepth() {
    const has = this.last?.ranges?.some(({name}) => name === 'depth') === true;
    if (!has || !this.depth) {
      this.depth?.remove();
      this.depth = null;
      if (!has) return;
      const depth = this.depth = new Image();
      depth.id = 'depth';
      depth.alt = t.depth;
      depth.onload = () => show(depth, true);
      depth.onerror = () => show(depth, false);
      drawing('minute').parentElement?.after(depth);
    }
    this.depth.src = `api/depth.png?${Math.round(performance.now())}`;
  }

  /** Rows about the car's battery and computer. @param {State} state @returns {[string, string][]} */
  carRows({battery, health, parts}) {
    /** @type {[string, string][]} */
    const rows = battery ? [[t.batteryName, DRAWER_STRINGS.batteryText(battery)]] : [];
    const [servos, computer] = [servosText(parts), health ? computerText(health) : null];
    if (servos) rows.push([t.servos.name, servos]);
    return computer ? [...rows, [t.health.faults, computer]] : rows;
  }
}

/** @param {State | null} state */
const faultsOf = (state) => (state?.health ? computerFaults(state.health) : []);
