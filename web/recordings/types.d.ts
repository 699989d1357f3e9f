// The shapes of /api/recordings; for the type checker only. See recordings_api.py.

/** A push of "mark" while driving. `t` is s from the start of its file. */
export interface Mark { t: number; text: string }
/** One file. Times are UTC; `lost` says in words what is missing of it. */
export interface Recording {
  name: string; start_ms: number; seconds: number; bytes: number;
  state: 'closed' | 'open' | 'damaged'; lost: string; marks: Mark[]; pictures: number;
}
/** `seat`: this is a car, with a seat to go back to. */
export interface Listing { car: string; seat: boolean; recordings: Recording[] }
/** One line of a plot. null: nothing there, or nothing known. */
export interface Series {
  group: string; name: string; unit: string; t: number[]; v: (number | null)[];
}
export interface Table {
  start_ms: number; seconds: number; series: Series[];
  reasons: { t: number; reason: string }[]; marks: Mark[];
  gaps: { t: number; words: string }[];
}

/** Files that follow each other without a pause: one drive. Times in s from its start. */
export interface Part extends Recording { startS: number; endS: number }
export interface Drive {
  startMs: number; seconds: number; bytes: number; parts: Part[];
  state: Recording['state'];
}
/** A unit with its place in the drive. */
export interface Unit { timeS: number; key: boolean; unit: Uint8Array<ArrayBuffer> }
/** Units from `loS` to before `hiS`; those before `loS` only lead up to them. */
export interface Stretch { loS: number; hiS: number; units: Unit[] }
