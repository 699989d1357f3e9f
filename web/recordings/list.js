/** The list of drives: when, how long, and a picture of each. */

import {byId, make, setText, show} from '../lib/dom.js';
import {parseVideo} from '../lib/wire.js';
import {drivesOf, marksOf, partOf, stem} from './drives.js';
import {STRINGS} from './strings.js';
import {drawThumbnail} from './thumbnail.js';

/** @import {Drive, Listing} from './types.js' */

export class DriveList {
  /** @param {{thumbnail: (name: string) => Promise<ArrayBuffer>}} parts */
  constructor({thumbnail}) {
    this.thumbnail = thumbnail;
    this.list = byId('list');
    /** @type {Drive[]} */
    this.drives = [];
    this.drawn = '';
    /**
     * Thumbnails by file, so that each is fetched once.
     * @type {Map<string, HTMLCanvasElement>}
     */
    this.pictures = new Map();
    /**
     * Thumbnails are drawn one after the other: the car has other work.
     * @type {Promise<void>}
     */
    this.drawing = Promise.resolve();
    this.sight = new IntersectionObserver((entries) => {
      for (const {isIntersecting, target} of entries) {
        if (!isIntersecting) continue;
        this.sight.unobserve(target);
        this.drawing = this.drawing.then(() =>
          this.picture(/** @type {HTMLCanvasElement} */ (target)));
      }
    });
  }

  /** @param {Listing} listing */
  update(listing) {
    const text = JSON.stringify(listing.recordings);
    if (text === this.drawn) return;
    this.drawn = text;
    this.drives = drivesOf(listing.recordings);
    const active = document.activeElement?.getAttribute('href');
    this.list.replaceChildren(...this.drives.map((drive) => this.row(drive)));
    const links = [...this.list.querySelectorAll('a')];
    links.find((link) => link.getAttribute('href') === active)?.focus();
    show(byId('list'), this.drives.length > 0);
    setText(byId('list-says'), this.drives.length ? ''
      : listing.seat ? STRINGS.empty : STRINGS.emptyFiles);
  }

  /** The drive that a file belongs to. @param {string} name */
  drive(name) {
    return this.drives.find((drive) => partOf(drive, name)) ?? null;
  }

  /** Marks the drive that is open. @param {Drive | null} open */
  current(open) {
    for (const link of this.list.querySelectorAll('a')) {
      const here = open && link.dataset.name === open.parts[0].name;
      if (here) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }

  /** @param {Drive} drive */
  row(drive) {
    const {name} = drive.parts[0];
    const link = document.createElement('a');
    link.href = `#${encodeURIComponent(name)}`;
    link.dataset.name = name;
    const words = make('span', '');
    words.className = 'about';
    const state = make('em', STRINGS.state[drive.state]);
    state.dataset.state = drive.state;
    const marks = marksOf(drive).length;
    const facts = [STRINGS.length(drive.seconds), STRINGS.size(drive.bytes)];
    if (marks) facts.push(STRINGS.marks(marks));
    words.append(make('strong', STRINGS.when(drive.startMs)), make('span', facts.join(' · ')));
    if (drive.state !== 'closed') words.append(state);
    // The camera may have started later than the recorder.
    const seen = drive.parts.find(({pictures}) => pictures > 0);
    link.append(this.frame(seen?.name ?? name), words);
    const row = document.createElement('li');
    row.append(link);
    return row;
  }

  /** A canvas that gets its thumbnail when it comes into view. @param {string} name */
  frame(name) {
    const old = this.pictures.get(stem(name));
    if (old) return old;
    const canvas = document.createElement('canvas');
    canvas.dataset.name = name;
    canvas.setAttribute('aria-hidden', 'true');
    [canvas.width, canvas.height] = [160, 120];
    this.pictures.set(stem(name), canvas);
    this.sight.observe(canvas);
    return canvas;
  }

  /** @param {HTMLCanvasElement} canvas */
  async picture(canvas) {
    try {
      const bytes = await this.thumbnail(canvas.dataset.name ?? '');
      await drawThumbnail(parseVideo(bytes).unit, canvas);
      canvas.dataset.drawn = 'yes';
    } catch (fault) {
      console.debug(`recordings: no picture of ${canvas.dataset.name}: ${fault}`);
    }
  }
}
