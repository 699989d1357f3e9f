/**
 * `fpvcar hil` measures from an LED before the camera to this page's glass.
 *
 *   /ws/video -> Video, as at the driver's seat -> cells of each picture -> hil
 *
 * It only reports the brightness of each picture and the time it was shown, by the clock
 * of hil. pi/fpvcar/hil/browser_probe.py lists the accepted messages.
 */

import {t} from '../lang/words.js';
import {byId, fillStrings} from '../lib/dom.js';
import {CarClock} from '../seat/link/clock.js';
import {Video} from '../video/video.js';
import {COLUMNS, ROWS, brightness} from './cells.js';

document.title = t.hil.title;
fillStrings(document, t.hil);

const PING_MS = 100;
const AGAIN_MS = 500;
const port = Number(new URLSearchParams(location.search).get('port'));
const small = document.createElement('canvas');
small.width = COLUMNS;
small.height = ROWS;
const pen = small.getContext('2d', {willReadFrequently: true, alpha: false});
if (pen) pen.imageSmoothingQuality = 'high';  // a cell is the mean of its area
const canvas = byId('picture', HTMLCanvasElement);
const media = byId('picture-mse', HTMLVideoElement);
const clock = new CarClock();
/** @type {WebSocket | null} */
let hil = null;
/** @type {WebSocket | null} */
let pictures = null;

const video = new Video({
  canvas,
  video: media,
  wanted: new URLSearchParams(location.search).get('path'),
  requestKey: () => {
    if (pictures?.readyState === WebSocket.OPEN) pictures.send('key');
  },
  ageMs: (captureUs, nowMs) => clock.ageMs(captureUs, nowMs),
  changed: tell,
});

/** Reports the picture on the glass. */
function tell() {
  const {best} = clock;
  if (!best || !pen || hil?.readyState !== WebSocket.OPEN) return;
  pen.drawImage(canvas.hidden ? media : canvas, 0, 0, COLUMNS, ROWS);
  hil.send(JSON.stringify({
    kind: 'picture',
    captured_us: video.lastCaptureUs,
    shown_us: Math.round((video.lastShownMs + best.offsetMs) * 1000),
    path: video.path?.name ?? 'none',
    cells: brightness(pen.getImageData(0, 0, COLUMNS, ROWS).data),
  }));
}

function watch() {
  pictures = new WebSocket(`${location.protocol.replace('http', 'ws')}//${location.host}/ws/video`);
  pictures.binaryType = 'arraybuffer';
  pictures.onmessage = ({data}) => video.frame(data);
  pictures.onclose = () => {
    pictures = null;
    if (hil?.readyState === WebSocket.OPEN) setTimeout(watch, AGAIN_MS);
  };
}

function ping() {
  if (hil?.readyState === WebSocket.OPEN) {
    hil.send(JSON.stringify({kind: 'ping', t: performance.now()}));
  }
}

function connect() {
  hil = new WebSocket(`ws://${location.hostname}:${port}/`);
  hil.onopen = () => {
    document.body.dataset.hil = 'up';
    clock.reset();
    ping();
    if (!pictures) watch();
  };
  hil.onmessage = ({data}) => {
    const {t, clock_us: carUs} = JSON.parse(data);
    clock.add(t, performance.now(), carUs);
  };
  hil.onclose = () => {
    document.body.dataset.hil = 'none';
    pictures?.close();
    setTimeout(connect, AGAIN_MS);
  };
}

setInterval(ping, PING_MS);
if (port > 0) connect();
