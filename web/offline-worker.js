/** The service worker: where the car cannot be reached it shows the offline page, in the
 * language of its own address. It caches that page only: the car's own pages
 * always come from the car. */

/** @typedef {Event & {waitUntil: (until: Promise<unknown>) => void}} Waiting */
/** @typedef {Event & {request: Request, respondWith: (answer: Promise<Response>) => void}} Fetching */

/** With another page, another name. */
const HOLDS = 'offline-1d691931';
/** Behind a proxy, other cars and other sites may have caches of the same origin. */
const {scope} = /** @type {{registration: {scope: string}}} */ (/** @type {unknown} */ (self)).registration;
const NAME = `${HOLDS} ${scope}`;
/** Caches of versions whose names had no scope. */
const OLDER = /^offline-\w+$/;
const PAGE = 'offline.html';
const language = new URLSearchParams(location.search).get('language') ?? 'en';

/** Kept as it came, headers and all. */
const keep = async () => (await caches.open(NAME)).add(new Request(PAGE, {cache: 'reload'}));

/** Only the newest version's page stays. */
async function tidy() {
  const names = (await caches.keys()).filter((name) => name.endsWith(` ${scope}`) || OLDER.test(name));
  await Promise.all(names.filter((name) => name !== NAME).map((name) => caches.delete(name)));
}

async function offline() {
  const kept = await caches.match(PAGE);
  if (!kept) return Response.error();
  const text = (await kept.text()).replace('<html lang="en">', `<html lang="${language}">`)
    .replaceAll('href="./"', `href="${scope}"`);
  return new Response(text, {headers: kept.headers});
}

addEventListener('install', (event) => /** @type {Waiting} */ (event).waitUntil(keep()));
addEventListener('activate', (event) => /** @type {Waiting} */ (event).waitUntil(tidy()));
addEventListener('fetch', (event) => {
  const {request, respondWith} = /** @type {Fetching} */ (event);
  // Modules, pictures, APIs: as if there were no service worker.
  if (request.mode === 'navigate') respondWith.call(event, fetch(request).catch(offline));
});
