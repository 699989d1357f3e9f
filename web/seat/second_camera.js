/** The second camera: a small picture in a corner. A tap on it, or C, swaps it with the large
 * one. Loads after the first screen, for a car with two cameras.
 *
 *   /ws/video?camera=NAME -> Video -> canvas      `view` tells the car which one is large
 */

import {HeldRemedy} from '../video/held.js';
import {OLD_MS, Video} from '../video/video.js';
import {fill, loadTexts, t} from '../lang/words.js';
import {byId, make, setAttr, setText, show} from '../lib/dom.js';
import {saved} from '../lib/storage.js';
import {VERSION} from '../lib/wire.js';
import {address} from './link/link.js';
import {StaleQueue, captureUs} from './link/stale.js';
import {encode} from './messages.js';

const AGAIN_MS = 500;
/** Without a picture for so long the socket is replaced; the car's program runs on for 5 s. */
const STUCK_MS = 3000;

/** Loads texts and style. Throws TypeError if they do not arrive. */
export async function loadStyle() {
  const [answer] = await Promise.all([
    fetch(new URL('second_camera.css', import.meta.url)), loadTexts('drawer'),
  ]);
  if (!answer.ok) throw new TypeError(`second_camera.css: ${answer.status}`);
  return answer.text();
}

export class SecondCamera {
  /** @param {string} name @param {import('./view.js').Page} page */
  constructor(name, page) {
    this.name = name;
    this.page = page;
    this.link = page.parts.link;
    this.first = page.parts.video;
    /** Shows this page the small picture? On a narrow screen only on request. */
    this.on = (saved.get('small-picture') || (innerWidth < 360 ? 'no' : 'yes')) === 'yes';
    this.wantsLarge = false;
    this.awake = true;
    this.queue = new StaleQueue();
    /** @type {WebSocket | null} */
    this.socket = null;
    this.openedMs = -Infinity;
    this.frameMs = -Infinity;
    const place = byId('picture').parentElement;
    const canvas = make('canvas', '');
    const video = make('video', '');
    Object.assign(video, {muted: true, playsInline: true, autoplay: true, disablePictureInPicture: true, hidden: true});
    setAttr(canvas, 'role', 'img');
    this.button = make('button', '');
    this.button.id = 'small-picture';
    this.button.append(this.says = make('span', ''));
    this.button.addEventListener('click', () => this.swap());
    this.video = new Video({
      canvas: /** @type {HTMLCanvasElement} */ (canvas),
      video: /** @type {HTMLVideoElement} */ (video),
      wanted: this.first.parts.wanted,
      requestKey: () => this.socket?.readyState === WebSocket.OPEN && this.socket.send('key'),
      ageMs: this.first.parts.ageMs,
      changed: () => this.shown(),
    });
    this.video.held = new HeldRemedy(this.video);
    place?.prepend(canvas, video);
    place?.append(this.button);
    this.apply();
  }

  /** Is the second camera's picture the large one? */
  get large() {
    return this.page.parts.video === this.video;
  }

  /** The camera of the small picture. */
  get small() {
    return this.large ? this.first : this.video;
  }

  /** Swaps both pictures, as soon as the second one has a new picture. */
  swap() {
    if (this.large) this.setLarge(false);
    else if (this.old(this.video)) {
      // It may pause for the large one.
      this.wantsLarge = !this.wantsLarge;
      this.tell();
    } else this.setLarge(true);
  }

  /** @param {boolean} large */
  setLarge(large) {
    this.wantsLarge = false;
    this.page.showVideo(large ? this.video : this.first);
    this.tell();
    this.apply();
    this.page.refresh();
  }

  /** Tells the car which picture is large, or is to become so. */
  tell() {
    const {wantsLarge} = this;
    this.link.send({kind: 'view', camera: this.large || wantsLarge ? this.name : '', shown: !wantsLarge});
  }

  /** The link has a new socket, for which the first camera is large. */
  welcomed() {
    if (this.large || this.wantsLarge) this.tell();
  }

  /** Shows what is large and small. */
  apply() {
    const {large, small, button} = this;
    for (const one of [this.first, this.video]) {
      for (const element of [one.parts.canvas, one.parts.video]) {
        element.classList.toggle('small', one === small);
      }
    }
    setAttr(byId('picture').parentElement ?? document.body, 'data-camera', large ? this.name : '');
    const {main, swap} = t.secondCamera;
    const name = large ? main : this.name;
    setText(this.says, name);
    setAttr(button, 'aria-label', fill(swap, {name}));
    setAttr(button, 'title', fill(swap, {name}));
    setAttr(this.video.parts.canvas, 'aria-label', this.name);
    setAttr(document.body, 'data-small', this.on ? 'on' : 'off');
    this.beat();
  }

  /** A picture of the second camera came. */
  shown() {
    if (this.wantsLarge) this.setLarge(true);
    else if (this.large && document.body.dataset.picture !== 'live') this.page.refresh();
  }

  /** Is the picture no longer the present one? @param {Video} video */
  old(video) {
    const ageMs = video.ageMs(performance.now());
    return ageMs === null || ageMs > OLD_MS || !this.link.up;
  }

  /** Ten times a second, while the page is visible. */
  beat() {
    const {small} = this;
    const [width, height] = small.size;
    if (width) document.body.style.setProperty('--small-ratio', `${width} / ${height}`);
    setAttr(this.button, 'data-old', String(this.old(small)));
    show(this.button, this.on && small.count.shown > 0);
    const nowMs = performance.now();
    const wanted = this.awake && this.link.up && (this.on || this.large || this.wantsLarge);
    if (!wanted) {
      if (this.link.up) this.close();
    } else if (this.socket === null ? nowMs - this.openedMs > AGAIN_MS
      : nowMs - Math.max(this.frameMs, this.openedMs) > STUCK_MS) {
      this.open(nowMs);
    }
  }

  /** @param {boolean} awake */
  setVisible(awake) {
    this.awake = awake;
    this.video.setVisible(awake);
    if (!awake) this.close();
  }

  /** @param {number} nowMs */
  open(nowMs) {
    this.close();
    this.openedMs = nowMs;
    const {link} = this;
    const socket = new WebSocket(
      address(`ws/video?id=${link.videoId}&camera=${encodeURIComponent(this.name)}`));
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    socket.onopen = () => socket.send(encode({kind: 'hello', v: VERSION, client: link.client}));
    socket.onmessage = ({data}) => {
      if (this.socket !== socket || !(data instanceof ArrayBuffer)) return;
      this.frameMs = performance.now();
      const us = captureUs(data);
      const ageMs = us === null ? null : link.clock.ageMs(us, this.frameMs);
      if (this.queue.arrived(ageMs, link.policy.rttMs, this.frameMs)) this.open(this.frameMs);
      else this.video.frame(data);
    };
    socket.onclose = () => {
      if (this.socket === socket) this.socket = null;
    };
  }

  close() {
    const {socket} = this;
    this.socket = null;
    socket?.close();
  }

  /** Adds the switch of the small picture to the menu's tab of the picture. */
  addSwitch() {
    const label = make('label', '');
    label.className = 'check';
    const box = document.createElement('input');
    Object.assign(box, {type: 'checkbox', id: 'show-small', checked: this.on});
    label.append(box, ' ', make('span', fill(t.secondCamera.show, {name: this.name})));
    box.addEventListener('change', () => {
      this.on = box.checked;
      saved.set('small-picture', this.on ? 'yes' : 'no');
      this.apply();
    });
    byId('whole').parentElement?.after(label);
  }
}
