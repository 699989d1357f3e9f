/** `window.fpvcar`: read-only state for tests and debugging. */

/**
 * @param {{link: import('./link/link.js').Link, page: import('./view.js').Page, controls: import('./input/controls.js').Controls}} parts
 */
export function exposeState({link, page, controls}) {
  const fpvcar = {
    /** The car's last state, the page's situation beside it. */
    get state() {
      return page.state;
    },
    get situation() {
      return page.situation;
    },
    get welcome() {
      return page.welcome;
    },
    get link() {
      return {
        kind: link.state.kind, ms: page.linkMs, offsetMs: link.clock.best?.offsetMs ?? null,
      };
    },
    get video() {
      const {video} = page.parts;
      const nowMs = performance.now();
      return {
        path: video.path?.name ?? 'none', software: video.path?.software === true,
        shown: video.count.shown,
        fed: video.count.fed, dropped: video.count.dropped, keysAsked: video.count.keysAsked,
        lastCaptureUs: video.lastCaptureUs, lastShownMs: video.lastShownMs,
        latencyMs: [...video.latencyMs], fps: video.fps(nowMs), ageMs: video.ageMs(nowMs),
        fault: video.fault, faults: video.count.faults, size: video.size,
      };
    },
    get wish() {
      return controls.wish;
    },
  };
  Object.defineProperty(window, 'fpvcar', {value: Object.freeze(fpvcar)});
}
