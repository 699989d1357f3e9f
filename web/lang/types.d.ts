// Every text of the pages; for the type checker only. Texts of lang/*/seat.json and of
// lang/*/drawer.json share the top level; each further part has its own name. Findings and
// `sentences`, translations of the texts of car and station, load on demand.

export type Words = typeof import('./en/seat.json')
  & typeof import('./en/drawer.json')
  & typeof import('./en/buttons.json')
  & typeof import('./en/calibration.json')
  & typeof import('./en/hil.json')
  & typeof import('./en/network.json')
  & typeof import('./en/recordings.json')
  & typeof import('./en/sites.json')
  & typeof import('./en/start.json')
  & typeof import('./en/trust.json')
  & Partial<typeof import('./en/findings.json')>
  & {sentences?: Record<string, string>};

export type { Text } from '../lib/messages.js';

/** What differs with a count, by the names of Intl.PluralRules. */
export type Forms = Record<string, string>;
