/** Wiring only: the list, and the drive that is open. Start reading here. */

import {t} from '../lang/words.js';
import {button, byId, fillStrings, input, setText, show} from '../lib/dom.js';
import {Refused} from '../lib/http.js';
import {API} from './api.js';
import {driveNamed, driveOf, isAway, momentIn, named, partOf, queryOf} from './drives.js';
import {Edit} from './list/edit.js';
import {Filter} from './list/filter.js';
import {DriveList} from './list/list.js';
import {Thumbnails} from './list/thumbnail.js';
import {STRINGS} from './strings.js';
import {Viewer} from './player/viewer.js';

const LOOK_EVERY_MS = 10_000;
const AGAIN_MS = 2000;
/** Drives on a page of the list. */
const PAGE = 100;

fillStrings(document, t.recordings);
const filter = new Filter(() => {
  befores = [];
  void refresh();
});
const edit = new Edit(() => void refresh());
const thumbnails = new Thumbnails(API.thumbnail);
const list = new DriveList({
  thumbnails, edit: (drive) => edit.open(drive, grownUp, {removable, trash: atStation}),
});
const viewer = new Viewer();
let opened = '';
let grownUp = false;
let atStation = false;
let removable = false;
/** Start times (ms UTC) that limit each page after the first: its drives began earlier. @type {number[]} */
let befores = [];
/** Start of the oldest drive shown, ms UTC: the next page begins before it. */
let oldestMs = 0;
let stationBegun = false;
/** @type {import('./player/recall.js').Recall | null} */
let recall = null;
/** @type {import('./list/moments.js').MomentSearch | null} */
let moments = null;
/** @type {import('./list/datasets.js').DatasetMaker | null} */
let datasets = null;
/** Drive of an address that is not on this page of the list. @type {import('./types.js').Drive | null} */
let linked = null;
let linkAsked = '';
let routed = '';
let timer = 0;
let asked = 0;

/** Shows the address's drive, or the list alone. */
function route() {
  const name = named(location.hash);
  const atS = momentIn(location.hash);
  // The open drive stays when filtered out.
  const others = [viewer.drive, linked].filter((other) => other !== null);
  const drive = name ? list.drive(name) ?? driveNamed(others, name) : null;
  if (name && !drive) void look(name);
  document.body.dataset.open = drive ? 'yes' : 'no';
  show(byId('viewer'), drive !== null);
  const id = drive ? `${drive.id} ${isAway(drive)}` : '';
  if (id !== opened) {
    if (drive) {
      viewer.open(drive, atS ?? Math.max(0, partOf(drive, name)?.startS ?? 0));
      byId('viewer-title').focus();
      scrollTo(0, 0);
    } else viewer.close();
    opened = id;
  } else if (atS !== null && location.hash !== routed) viewer.seek(atS);
  routed = location.hash;
  if (drive) setText(byId('viewer-title'), drive.title || STRINGS.when(drive.startMs));
  list.current(drive);
  recall?.open(drive);
  moments?.current(location.hash);
}

/** Opens the drive of an address that is on another page of the list. @param {string} id */
async function look(id) {
  if (id === linkAsked) return;
  linkAsked = id;
  try {
    const {drives: [found], copies} = await API.list(new URLSearchParams({id}));
    if (!found) return;
    linked = driveOf(found, copies[found.id]);
    if (named(location.hash) === id) route();
  } catch (fault) {
    linkAsked = '';  // asked again with the next list
    console.debug(`recordings: no drive ${id}: ${fault}`);
  }
}

/** @param {import('./types.js').Listing} listing */
function update(listing) {
  document.title = STRINGS.pageTitle(listing.car);
  setText(byId('car'), listing.car);
  show(byId('seat'), listing.seat);
  show(byId('unlock'), false);
  show(byId('filter'), listing.drives.length > 0 || filter.active);
  show(byId('older'), listing.more);
  show(byId('newer'), befores.length > 0);
  oldestMs = listing.drives.at(-1)?.start_ms ?? 0;
  grownUp = listing.grown_up;
  atStation = listing.station;
  removable = listing.removable;
  show(byId('datasets'), removable && listing.drives.length > 0);
  show(button('export-parquet'), listing.parquet);
  show(byId('moments'), listing.station);
  show(byId('weeks'), listing.station && !listing.to_search);
  show(byId('moments-off'), Boolean(listing.to_search));
  show(byId('moments-form'), !listing.to_search);
  setText(byId('moments-command'), listing.to_search);
  if (listing.station) void station().then(() => moments?.update(listing.drivers));
  filter.update(listing.drivers);
  list.update(listing, filter.active);
  datasets?.chosen();
  route();
}

/** Loads the part of the page that only a base station has. */
async function station() {
  if (stationBegun) return;
  stationBegun = true;
  const [{Station}, {Recall}, {MomentSearch}, {Weeks}] = await Promise.all([
    import('./list/station.js'), import('./player/recall.js'), import('./list/moments.js'),
    import('./plots/weeks.js')]);
  recall = new Recall({api: API, changed: () => void refresh()});
  recall.open(viewer.drive);
  moments = new MomentSearch({api: API, thumbnails, seek: (atS) => viewer.seek(atS)});
  new Weeks(API);
  new Station((recalls) => recall?.update(recalls));
}

/**
 * Hides the list until a code is entered; then the drive in the address opens again.
 * @param {Refused} refused
 */
function lock({message, openedBy}) {
  list.clear();
  viewer.close();
  route();
  for (const id of ['filter', 'moments', 'weeks', 'datasets', 'older', 'newer']) show(byId(id), false);
  show(byId('unlock'), true);
  show(byId('seat'), openedBy !== 'password');
  if (openedBy !== 'password') return;
  setText(byId('unlock-hint'), message);
  setText(byId('unlock-label'), t.recordings.password);
  Object.assign(input('code'), {type: 'password', inputMode: 'text', autocomplete: 'current-password'});
}

/** Turns to another page of the list. @param {number[]} to */
async function turn(to) {
  befores = to;
  await refresh();
  byId('list-title').scrollIntoView();
}

/** Fetches the list now and at intervals. */
async function refresh() {
  clearTimeout(timer);
  asked += 1;
  const mine = asked;
  let waitMs = LOOK_EVERY_MS;
  try {
    const {query} = filter;
    const listing = await API.list(queryOf(query, PAGE, STRINGS.causes(query.text), befores.at(-1)));
    if (mine !== asked) return;  // superseded by a newer request
    update(listing);
    if (listing.unread) waitMs = AGAIN_MS;
  } catch (fault) {
    if (mine !== asked) return;
    if (fault instanceof Refused && fault.locked) {
      lock(fault);
      return;
    }
    waitMs = AGAIN_MS;
    setText(byId('list-says'), STRINGS.failed(fault instanceof Error ? fault.message : String(fault)));
  }
  timer = Number(setTimeout(refresh, waitMs));
}

byId('unlock').addEventListener('submit', async (event) => {
  event.preventDefault();
  setText(byId('unlock-fault'), '');
  try {
    await API.unlock(input('code').value.trim());
  } catch (fault) {
    const locked = !(fault instanceof Error) || (fault instanceof Refused && fault.locked);
    setText(byId('unlock-fault'), locked ? t.recordings.wrongCode : fault.message);
    return;
  }
  await refresh();
  if (!byId('unlock').hidden) setText(byId('unlock-fault'), t.recordings.noCookie);
});
byId('datasets').addEventListener('toggle', async () => {
  const {DatasetMaker} = await import('./list/datasets.js');
  datasets = new DatasetMaker({api: API, drives: () => list.ticked, station: atStation});
}, {once: true});
byId('list').addEventListener('change', () => datasets?.chosen());
button('datasets-all').addEventListener('click', () => list.tickAll(true));
button('datasets-none').addEventListener('click', () => list.tickAll(false));
button('older').addEventListener('click', () => {
  void turn([...new Set([...befores, oldestMs])]);  // once, however often it is pushed
});
button('newer').addEventListener('click', () => void turn(befores.slice(0, -1)));
button('back').addEventListener('click', () => {
  location.hash = '';
});
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void refresh();
  else clearTimeout(timer);
});

setText(byId('list-says'), t.recordings.loading);
void refresh();
Object.defineProperty(window, 'recordings', {
  // The page's state, read-only, for tests and debugging.
  get: () => ({
    drives: list.drives.length,
    timeS: viewer.player?.timeS ?? null,
    playing: viewer.player?.playing ?? false,
    shown: viewer.picture.shownCount,
    shownS: viewer.picture.shownS,
    path: viewer.picture.path?.name ?? null,
    lines: [...viewer.plots.lines.keys()],
    view: [viewer.plots.view.fromS, viewer.plots.view.toS],
  }),
});
