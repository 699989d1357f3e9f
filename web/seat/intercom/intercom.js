/** The intercom's buttons: hold to talk through the car's speaker, listen to its microphone. Loads
 * when a grown-up has switched the intercom on. */

import {fill, loadSaid, said, t} from '../../lang/words.js';
import {button, capture as capturePointer, isTextField, make, setAttr, show} from '../../lib/dom.js';
import {VERSION} from '../../lib/wire.js';
import {icon} from '../drawer/marks.js';
import {takesKeys} from '../input/keyboard.js';
import {address} from '../link/link.js';
import {encode, parse} from '../messages.js';
import {toast} from '../toast.js';
import {Player, capture, packSound, parseSound} from './sound.js';

/** @import {State} from '../../lib/types.js' */
/** @typedef {{stream: MediaStream, node: AudioNode | null}} Microphone */

const MICROPHONE = 'M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3ZM6 11a6 6 0 0 0 12 0M12 17v4';
const SPEAKER = 'M4 9h4l5-4v14l-5-4H4ZM16 9a4 4 0 0 1 0 6M18.500 6.500a8 8 0 0 1 0 11';
/** The car closes its microphone 2 s after the last order. */
const ORDER_MS = 1000;

export class Intercom {
  /** @param {import('../link/link.js').Link} link */
  constructor(link) {
    this.link = link;
    this.allowed = this.listening = false;
    /** The push that talks now. @type {object | null} */
    this.push = null;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {AudioContext | null} */
    this.context = null;
    /** @type {Player | null} */
    this.player = null;
    /** Open only while the button is held. @type {Microphone | null} */
    this.microphone = null;
    this.timer = 0;
    this.talk = icon('talk', t.intercom.talk, MICROPHONE, () => {});
    this.hear = icon('listen', t.intercom.listen, SPEAKER, () => this.setListening(!this.listening));
    this.mark = make('p', t.intercom.open);
    this.mark.id = 'microphone-open';
    this.mark.setAttribute('role', 'status');
    button('snapshot').after(this.hear, this.talk, this.mark);
    this.listen();
    this.settle();
  }

  listen() {
    const {talk} = this;
    talk.addEventListener('pointerdown', (event) => {
      if (event.button > 0) return;
      event.preventDefault();
      if (capturePointer(talk, event.pointerId)) void this.hold();
    });
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture', 'blur']) {
      talk.addEventListener(end, () => this.release());
    }
    addEventListener('keydown', ({code, key, target, repeat, ctrlKey, altKey, metaKey}) => {
      const on = code === 'KeyT' ? !isTextField(target) && !takesKeys(target) : key === 'Enter' && target === talk;
      if (on && !repeat && !ctrlKey && !altKey && !metaKey) void this.hold();
    });
    addEventListener('keyup', ({code, key}) => (code === 'KeyT' || key === 'Enter' ? this.release() : undefined));
    addEventListener('blur', () => this.release());
    addEventListener('pagehide', () => this.end());
    document.addEventListener('visibilitychange', () => (document.hidden ? this.end() : undefined));
  }

  /** Takes each state, also the aged ones without a link. @param {State} state */
  update(state) {
    this.allowed = state.parts?.intercom?.on === true && state.role === 'driver' && this.link.up;
    if (!this.allowed) this.end();
    for (const element of [this.talk, this.hear]) show(element, this.allowed);
  }

  /** Opens the microphone, and talks until `release`. */
  async hold() {
    if (this.push || !this.ready()) return;
    const push = this.push = {};
    this.settle();
    try {
      const context = this.audio();
      const stream = await navigator.mediaDevices.getUserMedia({
        audio: {echoCancellation: true, noiseSuppression: true, autoGainControl: true},
      });
      /** @type {Microphone} */
      const microphone = {stream, node: null};
      if (this.push !== push) {  // let go while the browser asked
        close(microphone);
        return;
      }
      this.microphone = microphone;
      this.connect();
      this.settle();
      microphone.node = await capture(context, stream, (levels) => this.send(levels));
      if (this.microphone !== microphone) close(microphone);
    } catch (fault) {
      if (this.push !== push) return;
      this.release();
      const texts = /** @type {Record<string, string | undefined>} */ (
        {NotAllowedError: t.intercom.denied, NotFoundError: t.intercom.none});
      toast(texts[fault instanceof DOMException ? fault.name : '']
        ?? fill(t.intercom.failed, {reason: String(fault)}), 'warn');
    }
  }

  /** Closes the microphone. */
  release() {
    if (!this.push) return;
    this.push = null;
    if (this.microphone) close(this.microphone);
    this.microphone = null;
    this.settle();
  }

  /** @param {boolean} on */
  setListening(on) {
    if (on && !this.ready()) return;
    this.listening = on;
    if (on) this.player ??= new Player(this.audio());
    this.connect();
    this.order();
    this.settle();
  }

  /** Ends talking and listening. */
  end() {
    this.release();
    if (this.listening) this.setListening(false);
  }

  /** May this page talk and listen now? Toasts that it lacks https. */
  ready() {
    const secure = location.protocol === 'https:';
    if (this.allowed && !secure) toast(t.intercom.https, 'warn');
    return this.allowed && secure;
  }

  /** The sound system, awake: called by a push, as browsers demand. */
  audio() {
    this.context ??= new AudioContext({latencyHint: 'interactive'});
    void this.context.resume();
    return this.context;
  }

  connect() {
    if (this.socket || (!this.push && !this.listening)) return;
    const socket = this.socket = new WebSocket(address('ws/intercom'));
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      socket.send(encode({kind: 'hello', v: VERSION, client: this.link.client}));
      this.order();
    };
    /** @type {import('../../lib/types.js').Text | null} */
    let closing = null;
    socket.onmessage = ({data}) => {
      if (typeof data === 'string') {
        const message = parse(data);
        if (message?.kind === 'closing') closing = message.text;
        return;
      }
      const sound = parseSound(data);
      if (sound) this.player?.play(sound.levels, this.link.clock.ageMs(sound.clockUs, performance.now()));
    };
    socket.onclose = async () => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.end();
      await loadSaid();
      toast(fill(t.intercom.failed, {reason: said(closing) || '–'}), 'warn');
    };
    clearInterval(this.timer);
    this.timer = Number(setInterval(() => this.order(), ORDER_MS));
  }

  /** Orders the car's sound for the next 2 s. */
  order() {
    if (this.listening && this.socket?.readyState === WebSocket.OPEN) this.socket.send('listen');
  }

  /** Sends sound into an empty connection only: newer sound follows. @param {Float32Array} levels */
  send(levels) {
    const offsetMs = this.link.clock.best?.offsetMs;
    const {socket} = this;
    if (!this.push || offsetMs === undefined || socket?.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount === 0) socket.send(packSound((performance.now() + offsetMs) * 1000, levels));
  }

  /** Closes everything unused, and shows the rest. */
  settle() {
    if (!this.push && !this.listening) {
      clearInterval(this.timer);
      const {socket} = this;
      this.socket = null;
      socket?.close();
      void this.context?.suspend();
    }
    setAttr(this.talk, 'aria-pressed', String(this.push !== null));
    setAttr(this.hear, 'aria-pressed', String(this.listening));
    show(this.mark, this.microphone !== null);
  }
}

/** @param {Microphone} microphone */
function close({stream, node}) {
  for (const track of stream.getTracks()) track.stop();
  node?.disconnect();
}
