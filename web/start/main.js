/** The questions of a card image's first boot: pi/fpvcar/cli/first_boot.py. */

import {titled} from '../lang/forms.js';
import {LOCALE, t} from '../lang/words.js';
import {byId, fillStrings, input, setText, show} from '../lib/dom.js';
import {Refused, askJson} from '../lib/http.js';

/**
 * @typedef {{boards: {name: string, text: string}[], countries: string[], answered: boolean}} Questions
 * @typedef {{drive: string, grown_up: string, key: string, addresses: string[]}} Answer
 */

/** While the page asks, the car's own Wi-Fi stays open. */
const EVERY_MS = 10_000;
const URL = 'api/first-boot';
let done = false;

fillStrings(document, t.start);
document.title = t.start.title;
setText(byId('says'), t.start.asking);

/** @param {string} id */
const select = (id) => byId(id, HTMLSelectElement);

/** Names of countries in the browser's language. @param {string[]} codes */
function countries(codes) {
  const names = new Intl.DisplayNames(LOCALE, {type: 'region'});
  return codes.map((code) => new Option(names.of(code), code))
    .sort((one, other) => one.text.localeCompare(other.text));
}

/** @param {Questions} questions */
function ask({boards, countries: codes, answered}) {
  setText(byId('says'), answered ? t.start.answered : t.start.three);
  show(byId('questions'), !answered);
  if (select('board').options.length) return;
  select('board').replaceChildren(new Option(),
    ...boards.map(({name, text}) => new Option(titled(name, text), name)));
  select('country').replaceChildren(new Option(), ...countries(codes));
  const own = navigator.languages.map((tag) => tag.split('-').at(-1) ?? '');
  select('country').value = own.find((code) => codes.includes(code)) ?? '';
}

/** @param {Answer} answer */
function tell({drive, grown_up: grownUp, key, addresses}) {
  done = true;
  setText(byId('says'), t.start.starts);
  show(byId('questions'), false);
  show(byId('answer'), true);
  setText(byId('drive'), drive);
  setText(byId('grown-up'), grownUp);
  setText(byId('key'), key || t.start.keyFile);
  ['by-name', 'by-address'].forEach((id, index) => {
    byId(id, HTMLAnchorElement).href = addresses[index];
    setText(byId(id), addresses[index]);
  });
}

/** @param {unknown} fault */
const errorText = (fault) => (fault instanceof Refused ? fault.message : t.start.silent);

async function loop() {
  if (done) return;
  try {
    ask(await askJson(URL));
  } catch (fault) {
    if (fault instanceof Refused && fault.status === 404) {
      setText(byId('says'), t.start.elsewhere);
      show(byId('seat'), true);
      return;
    }
    setText(byId('says'), errorText(fault));
  }
  setTimeout(loop, EVERY_MS);
}

byId('questions').addEventListener('submit', async (event) => {
  event.preventDefault();
  const answers = {
    board: select('board').value, name: input('name').value.trim(), country: select('country').value,
    resistors: input('resistors').checked,
  };
  try {
    tell(await askJson(URL, {method: 'POST', body: JSON.stringify(answers)}));
  } catch (fault) {
    setText(byId('fault'), errorText(fault));
  }
});
void loop();
