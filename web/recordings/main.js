/** Wiring only: the list, and the drive that is open. Start reading here. */

import {button, byId, fillStrings, input, setText, show} from '../lib/dom.js';
import {API, Locked} from './api.js';
import {named, partOf, stem} from './drives.js';
import {DriveList} from './list.js';
import {MARKUP_STRINGS, STRINGS} from './strings.js';
import {Viewer} from './viewer.js';

const LOOK_EVERY_MS = 10_000;
const AGAIN_MS = 2000;

fillStrings(document, MARKUP_STRINGS);
const list = new DriveList({thumbnail: API.thumbnail});
const viewer = new Viewer();
let opened = '';
let timer = 0;

/** Shows what the address names: a drive, or the list alone. */
function route() {
  const name = named(location.hash);
  const drive = name ? list.drive(name) : null;
  document.body.dataset.open = drive ? 'yes' : 'no';
  show(byId('viewer'), drive !== null);
  const id = drive ? stem(drive.parts[0].name) : '';
  if (id !== opened) {
    if (drive) {
      const part = partOf(drive, name);
      // The camera may have started later than the recorder.
      const seen = part === drive.parts[0] ? drive.parts.find((one) => one.pictures > 0) : part;
      viewer.open(drive, seen?.startS ?? 0);
      byId('viewer-title').focus();
      scrollTo(0, 0);
    } else viewer.close();
    opened = id;
  }
  list.current(drive);
}

/** @param {import('./types.js').Listing} listing */
function update(listing) {
  document.title = STRINGS.pageTitle(listing.car);
  setText(byId('car'), listing.car);
  show(byId('seat'), listing.seat);
  show(byId('unlock'), false);
  list.update(listing);
  route();
}

/** Fetches the list now, and again and again. */
async function refresh() {
  clearTimeout(timer);
  let waitMs = LOOK_EVERY_MS;
  try {
    update(await API.list());
  } catch (fault) {
    if (fault instanceof Locked) {
      show(byId('unlock'), true);
      setText(byId('list-says'), '');
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
    const said = fault instanceof Locked || !(fault instanceof Error) ? '' : fault.message;
    setText(byId('unlock-fault'), said || STRINGS.wrongCode);
    return;
  }
  await refresh();
});
button('back').addEventListener('click', () => {
  location.hash = '';
});
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void refresh();
  else clearTimeout(timer);
});

setText(byId('list-says'), STRINGS.loading);
void refresh();
Object.defineProperty(window, 'recordings', {
  // What is on the page, for tests and the curious; read only.
  get: () => ({
    drives: list.drives.length,
    timeS: viewer.player?.timeS ?? null,
    playing: viewer.player?.playing ?? false,
    shown: viewer.picture.shownCount,
    shownS: viewer.picture.shownS,
    path: viewer.picture.path?.name ?? null,
    lines: [...viewer.plots.lines.keys()],
  }),
});
