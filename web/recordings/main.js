/** Wiring of the recordings page: the list, and the drive that is open. */

import {button, byId, fillStrings, input, setText, show} from '../lib/dom.js';
import {API, Locked} from './api.js';
import {Shelf} from './list.js';
import {named, partOf, stem} from './shape.js';
import {MARKUP_STRINGS, STRINGS} from './strings.js';
import {Viewer} from './viewer.js';

const LOOK_EVERY_MS = 10_000;
const AGAIN_MS = 2000;

fillStrings(document, MARKUP_STRINGS);
const shelf = new Shelf({thumbnail: API.thumbnail});
const viewer = new Viewer();
let opened = '';
let timer = 0;

/** Shows what the address says: a drive, or the list alone. */
function route() {
  const name = named(location.hash);
  const drive = name ? shelf.drive(name) : null;
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
  shelf.current(drive);
}

/** @param {import('./types.js').Listing} listing */
function came(listing) {
  document.title = STRINGS.pageTitle(listing.car);
  setText(byId('car'), listing.car);
  show(byId('seat'), listing.seat);
  show(byId('unlock'), false);
  shelf.update(listing);
  route();
}

async function look() {
  clearTimeout(timer);
  let waitMs = LOOK_EVERY_MS;
  try {
    came(await API.list());
  } catch (fault) {
    if (fault instanceof Locked) {
      show(byId('unlock'), true);
      setText(byId('shelf-says'), '');
      return;
    }
    waitMs = AGAIN_MS;
    setText(byId('shelf-says'), STRINGS.failed(fault instanceof Error ? fault.message : String(fault)));
  }
  timer = Number(setTimeout(look, waitMs));
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
  await look();
});
button('back').addEventListener('click', () => {
  location.hash = '';
});
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void look();
  else clearTimeout(timer);
});

setText(byId('shelf-says'), STRINGS.loading);
void look();
Object.defineProperty(window, 'recordings', {
  // For tests and the curious: what is on the page, to read only.
  get: () => ({
    drives: shelf.drives.length,
    timeS: viewer.player?.timeS ?? null,
    playing: viewer.player?.playing ?? false,
    shown: viewer.screen.shownCount,
    shownS: viewer.screen.shownS,
    path: viewer.screen.path?.name ?? null,
    lines: [...viewer.plots.lines.keys()],
  }),
});
