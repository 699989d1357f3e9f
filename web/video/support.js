/** The video paths that this browser supports. WebCodecs needs https or localhost, except in WebKitGTK. */
export const supports = {
  webcodecs: () => 'VideoDecoder' in globalThis,
  mse: () => 'MediaSource' in globalThis || 'ManagedMediaSource' in globalThis,
};

/** HTMLMediaElement's, which Node has not. */
export const HAVE_CURRENT_DATA = 2;
