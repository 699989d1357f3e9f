// A played car inside the page: it sends a test's messages. Loaded before the page's own modules;
// window.played is the handle.

(() => {
  const PICTURE_MS = 33;
  const STATE_MS = 100;
  const LATE_PICTURE_MS = 30;
  const began = performance.now();
  const clockUs = () => Math.round((performance.now() - began + 1e6) * 1000);

  const played = {
    welcome: {}, state: {}, units: [], filming: true, linked: true, refuses: false, lateMs: 0,
    sockets: new Set(),
    /** Starts the car; a test's values in sessionStorage apply from the first message on. */
    begin({welcome, state, film}) {
      const first = JSON.parse(sessionStorage.getItem('played') ?? '{}');
      const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      Object.assign(played, {welcome, state: {...state, ...first}, units: film.map(bytes)});
    },
    /** Changes the car's messages, and sends them at once. */
    say(state, more = {}) {
      Object.assign(played.state, state);
      Object.assign(played, more);
      for (const socket of played.sockets) socket.tell();
    },
  };
  window.played = played;

  class PlayedSocket {
    constructor(url) {
      this.url = new URL(url);
      this.readyState = 0;
      this.bufferedAmount = 0;
      this.count = 0;
      played.sockets.add(this);
      setTimeout(() => this.open(), 5);
    }

    open() {
      if (this.readyState !== 0 || !played.linked) return;
      if (played.refuses || sessionStorage.getItem('refuses')) {
        this.close();
        this.onclose?.({code: 1006, reason: ''});
        return;
      }
      this.readyState = 1;
      this.onopen?.({});
      const filming = this.url.pathname === '/ws/video';
      this.timer = setInterval(() => (filming ? this.film() : this.tell()),
        filming ? PICTURE_MS : STATE_MS);
    }

    send(text) {
      if (this.url.pathname !== '/ws/drive' || !played.linked) return;
      const message = JSON.parse(text);
      if (message.kind === 'hello') {
        const {named = true, cameras = []} = played.state;
        this.hear({...played.welcome, named, cameras, clock_us: clockUs()});
        this.welcomed = true;
        this.tell();
      }
      if (message.kind === 'resume') played.say({stop: null});
      if (message.kind === 'ping') {
        const {seq, t} = message;
        setTimeout(() => this.hear({kind: 'pong', seq, t, clock_us: clockUs(), nonce: 1}), played.lateMs);
      }
    }

    tell() {
      if (!this.welcomed) return;
      this.count += 1;
      this.hear({kind: 'state', ...played.state, seq: this.count, clock_us: clockUs(), nonce: this.count});
    }

    hear(message) {
      if (this.readyState === 1 && played.linked) this.onmessage?.({data: JSON.stringify(message)});
    }

    film() {
      if (!played.filming || !played.linked) return;
      const unit = played.units[this.count % played.units.length];
      const frame = new Uint8Array(20 + unit.length);
      const view = new DataView(frame.buffer);
      view.setUint8(0, 1);
      view.setUint8(1, 1);
      view.setUint8(2, this.count % played.units.length === 0 ? 1 : 0);
      view.setUint32(4, this.count, true);
      view.setBigUint64(8, BigInt(clockUs() - LATE_PICTURE_MS * 1000), true);
      view.setUint32(16, unit.length, true);
      frame.set(unit, 20);
      this.count += 1;
      this.onmessage?.({data: frame.buffer});
    }

    close() {
      clearInterval(this.timer);
      this.readyState = 3;
      played.sockets.delete(this);
    }
  }
  Object.assign(PlayedSocket, {CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3});
  window.WebSocket = PlayedSocket;

  // The menu and the second camera load at once, not after a second.
  const later = window.setTimeout;
  window.setTimeout = (act, ms, ...values) => later(act, ms === 1000 ? 0 : ms, ...values);

  const fetched = window.fetch;
  window.fetch = (url, ...more) => {
    if (url !== 'api/ping') return fetched(url, ...more);
    return played.linked ? Promise.resolve(new Response('{}')) : new Promise(() => {});
  };
})();
