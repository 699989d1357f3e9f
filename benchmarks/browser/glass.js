// Reads the clock strip (fpvbench.camera.strip) off a picture, before every paint.
// Runs in the measured page: ours or a baseline's.
//
// window.glass.painted: [clock, wall ms] of each new picture at the paint that shows it
// window.glass.presented: [clock, wall ms, media s] of each that a <video> reports as shown
(selector) => {
  const CELLS = 40, ROW = 8;
  const canvas = document.createElement('canvas');
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const source = document.querySelector(selector);
  const glass = {painted: [], presented: []};
  window.glass = glass;

  function read() {
    const width = source.videoWidth || source.width;
    if (!width) return null;
    canvas.width = width;
    canvas.height = 1;
    pen.drawImage(source, 0, ROW, width, 1, 0, 0, width, 1);
    const line = pen.getImageData(0, 0, width, 1).data;
    const cell = Math.floor(width / CELLS);
    let bits = 0n;
    for (let i = 0; i < CELLS; i++) {
      bits = bits << 1n | (line[4 * (i * cell + (cell >> 1))] > 128 ? 1n : 0n);
    }
    const clock = Number(bits >> 4n & 0xffffffffn);
    let check = 0;
    for (let i = 0; i < 8; i++) check ^= Number(BigInt(clock) >> BigInt(4 * i) & 15n);
    return Number(bits & 15n) === check && Number(bits >> 36n) === 10 ? clock : null;
  }

  let last = null;
  const look = () => {
    requestAnimationFrame(look);
    const paintMs = performance.timeOrigin + performance.now();  // reading takes a while
    const clock = read();
    if (clock === null || clock === last) return;
    last = clock;
    glass.painted.push([clock, paintMs]);
  };
  look();

  if (!source.requestVideoFrameCallback) return;
  const note = (_, about) => {
    source.requestVideoFrameCallback(note);
    const clock = read();
    if (clock === null) return;
    const shownMs = performance.timeOrigin + about.expectedDisplayTime;
    glass.presented.push([clock, shownMs, about.mediaTime]);
  };
  source.requestVideoFrameCallback(note);
}
