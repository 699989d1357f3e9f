/** The list of drives: time, driver, duration, distance, stops and a picture of each. */

import {t} from '../../lang/words.js';
import {byId, make, setText, show} from '../../lib/dom.js';
import {carOf, driveOf, driveNamed, isAway, isUsable, marksOf, stem} from '../drives.js';
import {STRINGS} from '../strings.js';
import {driversText} from './filter.js';

/** @import {Drive, Listing, Part} from '../types.js' */
/** @import {Thumbnails} from './thumbnail.js' */

export class DriveList {
  /**
   * @param {{thumbnails: Thumbnails, edit: (drive: Drive) => void}} parts
   */
  constructor({thumbnails, edit}) {
    this.thumbnails = thumbnails;
    this.edit = edit;
    this.list = byId('list');
    /** @type {Drive[]} */
    this.drives = [];
    this.drawn = '';
    /** Drives that a dataset leaves out, by id. @type {Set<string>} */
    this.left = new Set();
    /** Rows by content. @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    /**
     * Thumbnails by file and drive, so that each is fetched once.
     * @type {Map<string, HTMLCanvasElement>}
     */
    this.pictures = new Map();
  }

  /** @param {Listing} listing @param {boolean} filtered */
  update(listing, filtered) {
    this.say(listing, filtered);
    const text = JSON.stringify([listing.drives, listing.copies, listing.editable, listing.car]);
    if (text === this.drawn) return;
    this.drawn = text;
    this.drives = listing.drives.map((drive) => driveOf(drive, listing.copies[drive.id]));
    const {activeElement} = document;
    const active = this.list.contains(activeElement) ? activeElement?.id : null;
    let day = '';
    const before = this.rows;
    this.rows = new Map();
    this.list.replaceChildren(...this.drives.map((drive) => {
      const its = STRINGS.day(drive.startMs);
      const title = its === day ? '' : its;
      day = its;
      const shows = JSON.stringify([drive, title, listing.editable, listing.car]);
      const row = before.get(shows) ?? this.row(drive, listing);
      if (title && !before.has(shows)) row.prepend(make('h3', title));
      this.rows.set(shows, row);
      return row;
    }));
    if (active) document.getElementById(active)?.focus();
    const ids = new Set(this.drives.map(({id}) => id));
    for (const [key, canvas] of this.pictures) {
      if (ids.has(canvas.dataset.drive ?? '')) continue;
      this.thumbnails.sight.unobserve(canvas);
      this.pictures.delete(key);
    }
    show(byId('list'), this.drives.length > 0);
  }

  /** Clears the list and its status. */
  clear() {
    this.drawn = '';
    this.drives = [];
    this.rows.clear();
    this.pictures.clear();
    this.list.replaceChildren();
    show(this.list, false);
    setText(byId('list-says'), '');
  }

  /** @param {Listing} listing @param {boolean} filtered */
  say({drives, seat, station, unread}, filtered) {
    const {noneFound, empty: emptyCar, emptyStation, emptyFiles} = t.recordings;
    const empty = filtered ? noneFound : seat ? emptyCar : station ? emptyStation : emptyFiles;
    const text = unread ? STRINGS.unread(unread) : drives.length ? '' : empty;
    setText(byId('list-says'), text);
  }

  /** The drive that an address names. @param {string} name */
  drive(name) {
    return driveNamed(this.drives, name);
  }

  /** Marks the drive that is open. @param {Drive | null} open */
  current(open) {
    for (const link of this.list.querySelectorAll('a')) {
      const current = open && link.dataset.id === open.id;
      if (current) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }

  /** @param {Drive} drive @param {Listing} listing */
  row(drive, {editable, car}) {
    const link = document.createElement('a');
    link.href = `#${encodeURIComponent(drive.id)}`;
    link.id = `drive ${drive.id}`;
    link.dataset.id = drive.id;
    const about = make('span', '');
    about.className = 'about';
    const when = STRINGS.time(drive.startMs);  // below its day
    about.append(make('strong', drive.title || when));
    if (drive.title) about.append(make('span', when));
    const recordedBy = carOf(drive);
    if (recordedBy && recordedBy !== car) about.append(make('span', recordedBy));
    for (const line of factsOf(drive)) about.append(make('span', line));
    if (drive.copies.length) about.append(make('span', STRINGS.copies(drive.copies)));
    if (drive.state !== 'closed') about.append(badge(drive.state, t.recordings.state[drive.state]));
    const tier = drive.archive?.tier;
    if (tier === 'bucket' || tier === 'away') about.append(badge(tier, t.recordings.tier[tier]));
    // The camera may have started later than the recorder.
    const seen = drive.parts.find(({pictures}) => pictures > 0);
    link.append(this.frame(seen ?? drive.parts[0], drive), about);
    const card = make('div', '');
    if (isUsable(drive)) card.append(this.tick(drive));
    card.append(link);
    if (editable) card.append(this.editButton(drive));
    const row = document.createElement('li');
    row.append(card);
    return row;
  }

  /** The drives that are ticked for a dataset. */
  get ticked() {
    return this.drives.filter((drive) => isUsable(drive) && !this.left.has(drive.id));
  }

  /** Ticks all drives of this page, or none. @param {boolean} on */
  tickAll(on) {
    for (const box of this.list.querySelectorAll('.choose input')) {
      if (box instanceof HTMLInputElement && box.checked !== on) box.click();
    }
  }

  /** @param {Drive} drive */
  tick({id, title, startMs}) {
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = !this.left.has(id);
    box.setAttribute('aria-label', STRINGS.intoDataset(title || STRINGS.when(startMs)));
    box.addEventListener('change', () => {
      if (box.checked) this.left.delete(id);
      else this.left.add(id);
    });
    const label = make('label', '');
    label.className = 'choose';
    label.append(box);
    return label;
  }

  /** @param {Drive} drive */
  editButton(drive) {
    const edit = make('button', '⋯');
    edit.className = 'icon edit';
    edit.id = `edit ${drive.id}`;
    edit.setAttribute('aria-label', STRINGS.edit(drive.title || STRINGS.when(drive.startMs)));
    edit.addEventListener('click', () => this.edit(drive));
    return edit;
  }

  /**
   * A canvas that gets its thumbnail when it comes into view.
   * @param {Part} part with pictures @param {Drive} drive two may share a file
   */
  frame({name, from_s: fromS}, drive) {
    const {id} = drive;
    const key = `${stem(name)} ${id}`;
    const old = this.pictures.get(key);
    const away = isAway(drive);
    if (old && (away || !old.dataset.away)) return old;
    const canvas = this.thumbnails.canvas(name, fromS, !away);
    canvas.dataset.drive = id;
    if (away) canvas.dataset.away = 'yes';
    this.pictures.set(key, canvas);
    return canvas;
  }
}

/** @param {string} state @param {string} text */
function badge(state, text) {
  const element = make('em', text);
  element.dataset.state = state;
  return element;
}

/** The lines of the list for a drive. @param {Drive} drive */
function factsOf(drive) {
  const {drivers, metres, seconds, bytes, stops, parked} = drive;
  const who = parked ? t.recordings.parked : driversText(drivers);
  const distance = metres === null || parked ? '' : STRINGS.metres(metres);
  const figures = [STRINGS.length(seconds), distance, STRINGS.size(bytes)];
  const marks = marksOf(drive).length;
  const more = [STRINGS.stops(stops), marks ? STRINGS.marks(marks) : ''];
  return [[who, ...figures], more].map((line) => line.filter(Boolean).join('\u00a0· ')).filter(Boolean);
}
