/** The dialog that names a drive, or deletes it: a grown-up's right. */

import {t} from '../../lang/words.js';
import {button, byId, input, setText, show} from '../../lib/dom.js';
import {Refused} from '../../lib/http.js';
import {API} from '../api.js';
import {driveNamed, named} from '../drives.js';
import {STRINGS} from '../strings.js';

/** @import {Drive} from '../types.js' */

export class Edit {
  /** @param {() => void} changed called when the list must be reloaded */
  constructor(changed) {
    this.dialog = byId('edit', HTMLDialogElement);
    this.changed = changed;
    this.grownUp = false;
    this.trash = false;
    /** @type {Drive | null} */
    this.drive = null;
    byId('edit-name').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.act((drive) => API.rename(drive.id, input('edit-title-text').value.trim()));
    });
    byId('edit-sure').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.act((drive) => this.remove(drive));
    });
    button('edit-remove').addEventListener('click', () => this.ask());
    for (const id of ['edit-cancel', 'edit-close']) {
      button(id).addEventListener('click', () => this.dialog.close());
    }
  }

  /**
   * @param {Drive} drive @param {boolean} grownUp was a code entered?
   * @param {{removable: boolean, trash: boolean}} here is grown-up access possible
   * here; a base station has a trash, and a password in place of the code
   */
  open(drive, grownUp, {removable, trash}) {
    this.drive = drive;
    this.grownUp = grownUp;
    setText(byId('edit-when'), STRINGS.when(drive.startMs));
    input('edit-title-text').value = drive.title;
    input('edit-code').value = '';
    this.say('');
    show(byId('edit-sure'), false);
    this.trash = trash;
    setText(button('edit-delete'), trash ? t.recordings.intoTrash : t.recordings.removeSure);
    setText(byId('edit-code-label'), trash ? t.recordings.password : t.recordings.grownUpCode);
    const open = drive.state === 'open';
    show(button('edit-remove'), removable && !open);
    setText(byId('edit-open'), removable && open ? t.recordings.stillOpen : '');
    this.dialog.showModal();
  }

  /** Lists the parts to remove, for confirmation. */
  ask() {
    const {drive} = this;
    if (!drive) return;
    const gone = drive.parts.filter(({shared}) => !shared);
    const bytes = gone.reduce((sum, part) => sum + part.bytes, 0);
    const stay = drive.parts.length - gone.length;
    setText(byId('edit-sure-says'), this.trash ? STRINGS.sureTrash(STRINGS.size(bytes))
      : STRINGS.sure(gone.length, STRINGS.size(bytes), stay));
    show(byId('edit-code-part'), !this.grownUp);
    input('edit-code').required = !this.grownUp;
    show(button('edit-remove'), false);
    show(byId('edit-sure'), true);
    (this.grownUp ? button('edit-cancel') : input('edit-code')).focus();
  }

  /** @param {Drive} drive */
  async remove(drive) {
    if (!this.grownUp) {
      await API.unlock(input('edit-code').value.trim());
      this.grownUp = true;
    }
    try {
      await API.remove(drive.id);
    } catch (fault) {
      if (fault instanceof Refused && fault.locked) {  // the code was a driver's, or half an hour is over
        this.grownUp = false;
        this.ask();
      }
      throw fault;
    }
    if (driveNamed([drive], named(location.hash))) location.hash = '';
  }

  /** Runs the act; closes, or shows the error. @param {(drive: Drive) => Promise<unknown>} what */
  async act(what) {
    const {drive} = this;
    if (!drive) return;
    this.say('');
    try {
      await what(drive);
    } catch (fault) {
      this.say(STRINGS.refused(fault instanceof Error ? fault.message : String(fault)));
      return;
    }
    this.dialog.close();
    this.changed();
  }

  /** @param {string} text */
  say(text) {
    setText(byId('edit-fault'), text);
  }
}
