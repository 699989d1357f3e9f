/** The archive of the open drive: where it is, and its way back, with progress. */

import {t, fill, said} from '../../lang/words.js';
import {button, byId, setText, show} from '../../lib/dom.js';
import {EXPORT_STRINGS} from './export-strings.js';
import {STRINGS} from '../strings.js';

/** @import {Drive, RecallApi, RecallState} from '../types.js' */

const ACTIVE = ['waiting', 'copying', 'verifying'];

/** Bytes of bytes, rate and time left; '' if it does not copy. @param {RecallState} recall */
export function recallFigures({state, done, total, rate}) {
  const leftS = rate ? Math.max(0, total - done) / rate : null;
  return state === 'copying'
    ? EXPORT_STRINGS.progress(Math.min(done, total), total, true, rate || null, leftS) : '';
}

/** @param {RecallState} recall */
export const recallText = ({state, place, fault}) => (state === 'failed' ? STRINGS.refused(said(fault))
  : said(fault) || (state === 'done' ? '' : fill(t.recordings.recall[state], {place})));

export class Recall {
  /** @param {{api: RecallApi, changed: () => void}} parts `changed`: the list must be reloaded */
  constructor({api, changed}) {
    this.api = api;
    this.changed = changed;
    /** @type {Drive | null} */
    this.drive = null;
    /** @type {RecallState[]} */
    this.recalls = [];
    /** Refusal of the last request. */
    this.fault = '';
    button('recall-begin').addEventListener('click', () => void this.act(this.api.recall));
    button('recall-cancel').addEventListener('click', () => void this.act(this.api.cancelRecall));
  }

  /** Another drive is open. @param {Drive | null} drive */
  open(drive) {
    if (drive?.id !== this.drive?.id) this.fault = '';
    this.drive = drive;
    this.draw();
  }

  /** @param {RecallState[]} recalls of the station, as it tells them now */
  update(recalls) {
    const active = new Set(this.recalls.filter(isActive).map(({session}) => session));
    this.recalls = recalls;
    this.draw();
    if (recalls.some(({session, state}) => active.has(session) && state === 'done')) this.changed();
  }

  /** @param {(id: string) => Promise<RecallState>} request */
  async act(request) {
    const {drive} = this;
    if (!drive) return;
    this.fault = '';
    try {
      const recall = await request(drive.id);
      this.update([...this.recalls.filter(({session}) => session !== recall.session), recall]);
    } catch (fault) {
      this.fault = STRINGS.refused(fault instanceof Error ? fault.message : String(fault));
      this.draw();
    }
  }

  draw() {
    const {drive} = this;
    const archive = drive?.archive;
    const recall = this.recalls.find(({drives}) => drive && drives.includes(drive.id));
    const active = recall !== undefined && isActive(recall);
    const told = this.fault || (recall && (archive || recall.fault) ? recallText(recall) : '');
    const tier = archive?.tier;
    const where = tier && !active ? fill(t.recordings.recall[tier], {place: archive.place}) : '';
    show(byId('recall'), Boolean(told || where));
    setText(byId('recall-where'), where);
    setText(byId('recall-says'), told);
    byId('recall-says').classList.toggle('fault', told !== '' && (this.fault !== '' || recall?.fault !== null));
    setText(byId('recall-figures'), recall ? recallFigures(recall) : '');
    const bar = byId('recall-bar', HTMLProgressElement);
    show(bar, active);
    bar.max = Math.max(recall?.total ?? 0, 1);
    bar.value = recall?.done ?? 0;
    show(button('recall-begin'), !active && (tier === 'folder' || tier === 'bucket'));
    show(button('recall-cancel'), active && recall.state !== 'verifying');
  }
}

/** @param {RecallState} recall */
const isActive = ({state}) => ACTIVE.includes(state);
