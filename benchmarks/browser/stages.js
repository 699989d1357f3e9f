// Notes the times of each picture on its way through our page, before the page's own scripts run.
//
// window.stages: capture in us -> wall ms at which it was {received, decoded, drawn, painted}
(() => {
  const stages = new Map();
  window.stages = stages;
  const nowMs = () => performance.timeOrigin + performance.now();
  const note = (captureUs, stage) => {
    const times = stages.get(captureUs) ?? {};
    times[stage] ??= nowMs();
    stages.set(captureUs, times);
  };

  window.WebSocket = class extends WebSocket {
    constructor(url, ...more) {
      super(url, ...more);
      if (!String(url).includes('/ws/video')) return;
      this.addEventListener('message', ({data}) => {
        if (data instanceof ArrayBuffer) note(Number(new DataView(data).getBigUint64(8, true)), 'received');
      });
    }
  };

  window.VideoDecoder = class extends VideoDecoder {
    constructor({output, error}) {
      super({error, output: (picture) => {
        const {timestamp} = picture;
        note(timestamp, 'decoded');
        output(picture);
        note(timestamp, 'drawn');
        requestAnimationFrame(() => note(timestamp, 'painted'));
      }});
    }
  };
})();
