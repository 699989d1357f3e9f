// Every text of the pages; for the type checker only. Texts of lang/*/seat.js and of
// lang/*/drawer.js share the top level; each further part has its own name. Findings and
// `sentences`, translations of the texts of car and station, load on demand.

export type Words = typeof import('./en/seat.js').default
  & typeof import('./en/drawer.js').default
  & typeof import('./en/buttons.js').default
  & typeof import('./en/calibration.js').default
  & typeof import('./en/hil.js').default
  & typeof import('./en/network.js').default
  & typeof import('./en/recordings.js').default
  & typeof import('./en/sites.js').default
  & typeof import('./en/start.js').default
  & typeof import('./en/trust.js').default
  & Partial<typeof import('./en/findings.js').default>
  & {sentences?: Record<string, string>};

export type { Text } from '../lib/messages.js';

/** What differs with a count, by the names of Intl.PluralRules. */
export type Forms = Record<string, string>;
