// Every message of the pages; for the type checker only. Words of lang/*/seat.js and of
// lang/*/drawer.js stand beside each other, each further part's under its own name.

export type Words = typeof import('./en/seat.js').default
  & typeof import('./en/drawer.js').default
  & typeof import('./en/calibration.js').default
  & typeof import('./en/network.js').default
  & typeof import('./en/recordings.js').default
  & typeof import('./en/trust.js').default;

/** What differs with a count, by the names of Intl.PluralRules. */
export type Forms = Record<string, string>;
