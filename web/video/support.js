/** What this browser offers for showing video. */

/** HTMLMediaElement's, which Node has not. */
export const HAVE_CURRENT_DATA = 2;

/**
 * The class for Media Source Extensions, if there is one.
 * @returns {typeof MediaSource | undefined}
 */
export function mediaSourceClass() {
  const here = /** @type {{MediaSource?: typeof MediaSource,
    ManagedMediaSource?: typeof MediaSource}} */ (globalThis);
  return here.MediaSource ?? here.ManagedMediaSource;
}

/** Which paths work. VideoDecoder exists on https and localhost. */
export const supports = {
  webcodecs: () => 'VideoDecoder' in globalThis,
  mse: () => mediaSourceClass() !== undefined,
};
