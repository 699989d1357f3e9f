// The shapes of /api/recordings (server/recordings_api.py); for the type checker only.

/** A moment that the driver marked. `t` is seconds from the start of its file. */
export interface Mark { t: number; text: string }
/** One file. Times are UTC; `lost` says in words what is missing in it. */
export interface Recording {
  name: string; start_ms: number; seconds: number; bytes: number;
  state: 'closed' | 'open' | 'damaged'; lost: string; marks: Mark[]; pictures: number;
}
/** All files. `seat`: this is a car, with a seat to go back to. */
export interface Listing { car: string; seat: boolean; recordings: Recording[] }
/** One line of a plot. A value of null is unknown. */
export interface Series {
  group: string; name: string; unit: string; t: number[]; v: (number | null)[];
}
export interface Table {
  start_ms: number; seconds: number; series: Series[];
  reasons: { t: number; reason: string }[]; marks: Mark[];
  gaps: { t: number; words: string }[];
}

/** A file of a drive; `startS` and `endS` count from the drive's start. */
export interface Part extends Recording { startS: number; endS: number }
/** Files that follow each other without a pause. */
export interface Drive {
  startMs: number; seconds: number; bytes: number; parts: Part[];
  state: Recording['state'];
}
/** A unit with its place in the drive. */
export interface Unit { timeS: number; key: boolean; unit: Uint8Array<ArrayBuffer> }
/** Units from `loS` to before `hiS`; those before `loS` only lead up to them. */
export interface Span { loS: number; hiS: number; units: Unit[] }
