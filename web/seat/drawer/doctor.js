/** The car's faults, their reasons and remedies, for grown-ups. Loaded on demand; the car
 * runs `fpvcar doctor`. */

import {asSentence, counted, listed, loadFindings, named, titled} from '../../lang/forms.js';
import {t, fill, filled, number} from '../../lang/words.js';
import {make} from '../../lib/dom.js';
import {Refused, askJson} from '../../lib/http.js';

/**
 * @typedef {{key: string, severity: 'note' | 'warning' | 'fault', what: string,
 *   why: string, mend: string, values: Record<string, string>}} Finding
 * @typedef {{about: string, findings: Finding[], well: string[],
 *   not_asked: {part: string, why: string}[]}} Report
 */

/** The car's report. Throws an Error with the car's message. @returns {Promise<Report>} */
async function ask() {
  try {
    return await askJson('api/doctor', {method: 'POST'});
  } catch (fault) {
    throw fault instanceof Refused ? fault : new Error(t.carSilent);
  }
}

/** Fetches the report and shows it in `place`. @param {HTMLButtonElement} button @param {HTMLElement} place */
export async function showReport(button, place) {
  button.disabled = true;
  const says = make('p', t.doctor.looking);
  says.setAttribute('role', 'status');
  place.replaceChildren(says);
  try {
    const [report] = await Promise.all([ask(), loadFindings()]);
    says.textContent = countText(report.findings.length);
    place.append(...reportElements(report));
  } catch (fault) {
    says.textContent = fault instanceof Error ? fault.message : String(fault);
    says.className = 'fault';
  }
  button.disabled = false;
}

/** @param {number} count of findings */
const countText = (count) =>
  (count ? counted(t.doctor.found, count) : t.doctor.foundNone);

/** @param {Report} report */
function reportElements({about, findings, well, not_asked: notAsked}) {
  const elements = findings.map(finding);
  elements.push(hint(about));
  if (well.length) elements.push(hint(fill(t.doctor.well, {parts: listed(well.map(partName), '、')})));
  if (notAsked.length) {
    const more = document.createElement('details');
    const list = make('ul', '');
    list.append(...notAsked.map(({part, why}) => make('li', titled(partName(part), why))));
    more.append(make('summary', fill(t.doctor.notAsked, {count: number(notAsked.length)})), list);
    elements.push(more);
  }
  return elements;
}

/** @param {string} part of the car */
const partName = (part) => named(t.findings?.parts ?? {}, part) ?? part;

/** @param {Finding} one @returns {HTMLElement} */
function finding({key, severity, values, ...english}) {
  const kinds = /** @type {Record<string, object> | undefined} */ (t.findings?.kinds);
  const [what, why, mend] = /** @type {const} */ (['what', 'why', 'mend']).map((text) =>
    filled(named(kinds?.[key] ?? {}, text) ?? english[text], values));
  const element = make('article', '');
  element.className = 'finding';
  element.dataset.severity = severity;
  const title = make('h3', '');
  title.append(make('span', t.doctor.levels[severity]), ` ${asSentence(what)}`);
  const steps = make('p', '');
  steps.className = 'mend';
  steps.append(make('b', t.doctor.mend), ` ${asSentence(mend)}`);
  element.append(title, make('p', why), steps);
  return element;
}

/** @param {string} text */
function hint(text) {
  const element = make('p', text);
  element.className = 'hint';
  return element;
}
