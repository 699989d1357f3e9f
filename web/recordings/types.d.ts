// The shapes of /api/recordings (library/api/recordings_api.py, drives_api.py); for the type
// checker only.

import type { Dataset, DatasetRequest, Datasets, Export, ExportRequest, Text } from '../lib/types.js';

/** A moment that the driver marked. `t` is seconds from the start of its file. */
export interface Mark { t: number; text: string }
/**
 * A file's part in a drive, from `from_s` to `to_s` of the file. Times are UTC; `lost`
 * says in words what is missing in it; `shared`: another drive has a part in it, too.
 */
export interface FoundPart {
  name: string; start_ms: number; seconds: number; bytes: number; state: State;
  lost: string; marks: Mark[]; pictures: number; from_s: number; to_s: number;
  shared: boolean;
}
export type State = 'closed' | 'open' | 'damaged';
/** A drive as the car tells it: see library/drives.py. */
export interface FoundDrive {
  id: string; start_ms: number; seconds: number; parked: boolean; drivers: string[];
  stops: Record<string, number>; metres: number | null; bytes: number; state: State;
  parts: FoundPart[]; title: string;
}
/**
 * Some of the drives. `seat`: this is a car, with a seat to go back to; `unread` files
 * are not looked into yet. `to_search` is the command that installs the libraries of searches, '' if they are there.
 */
export interface Listing {
  car: string; seat: boolean; station: boolean; to_search: string; parquet: boolean; grown_up: boolean;
  removable: boolean; editable: boolean; drivers: string[]; drives: FoundDrive[]; more: boolean;
  unread: number; copies: Record<string, Copy[]>;
}
/** A copy of a drive: `place` is "car", "" here, or a remote; see library/drive_repository.py. */
export interface Copy { place: string; verified_s: number; whole: boolean; tier: Tier }
/** Archive of a copy; "away": a folder that is not mounted; "": none. */
export type Tier = '' | 'folder' | 'bucket' | 'away';
/** A recall of a base station: see fpvstation/replicas/recalls.py. */
export interface RecallState {
  session: string; drives: string[]; place: string; total: number; done: number; rate: number;
  state: 'waiting' | 'copying' | 'verifying' | 'done' | 'cancelled' | 'failed'; fault: Text | null;
}
/** Requests of recall.js to the station. */
export interface RecallApi {
  recall: (id: string) => Promise<RecallState>;
  cancelRecall: (id: string) => Promise<RecallState>;
}
/** State of a car at a base station: see fpvstation/fetch/scheduler.py. */
export interface CarState {
  name: string; folder: string; url: string; state: Text | 'ok' | 'none'; waiting: number;
  bytes: number; waiting_bytes: number; rate: number; card_free: number;
  card_total: number; late: Record<string, Text>;
}
export interface RemoteState {
  place: string; state: Text | 'ok' | 'none'; waiting: number; bytes: number; waiting_bytes: number;
  rate: number; last_fault: Text | null; fault_s: number; oldest_s: number;
  complete: number; waits_until: string;
}
/** A background task of a base station: see fpvstation/housekeeping.py. */
export interface ChoreState { name: Text; fault: Text | null; fault_s: number }
/** What /api/status of a base station answers. */
export interface Storage {
  store: {
    path: string; sessions: number; segments: number; bytes: number; free: number;
    total: number; archived: number; archived_bytes: number;
  };
  cars: CarState[]; offices: RemoteState[]; unread: number; why_anew: Text | null;
  chores: ChoreState[]; snapshots: number; snapshot_s: number; recalls: RecallState[];
}
/** A moment that a search finds: see fpvstation/web/moments_api.py. */
export interface Moment {
  session: string; cause: string | null; driver: string | null; start_ms: number;
  seconds: number; worst: Record<string, number>; drive: string; at_s: number; file: string;
  file_ms: number;
}
export interface Moments { moments: Moment[]; more: boolean }
/** Plot, line, week in ms UTC, value. */
export type WeekRow = [string, string, number, number];
export interface WeekFigures { rows: WeekRow[] }
/** What the list is filtered by; `day` is a local date, as <input type=date> gives it. */
export interface DriveQuery { driver: string; parked: boolean; day: string; text: string }
/** One line of a plot. A value of null is unknown. */
export interface Series {
  group: string; name: string; unit: string; t: number[]; v: (number | null)[];
}
export interface Table {
  start_ms: number; seconds: number; series: Series[];
  reasons: { t: number; reason: string }[]; marks: Mark[];
  gaps: { t: number; words: Text }[];
  servos?: Record<string, { least_deg: number; most_deg: number; rest_deg: number }>;
}

/**
 * A file of a drive; `startS` and `endS` are where the whole file is, counted from the
 * drive's start: the first may begin before the drive, the last end after it.
 */
export interface Part extends FoundPart { startS: number; endS: number }
/** Time with a driver at the wheel. */
export interface Drive {
  id: string; startMs: number; seconds: number; bytes: number; parts: Part[];
  state: State; title: string; parked: boolean; drivers: string[];
  stops: Record<string, number>; metres: number | null; copies: Copy[];
  /** The archive that has it. */
  archive: Copy | null;
}
/** A unit with its place in the drive. */
export interface Unit { timeS: number; key: boolean; unit: Uint8Array<ArrayBuffer> }
/** Units from `loS` to before `hiS`; those before `loS` only lead up to them. */
export interface Span { loS: number; hiS: number; units: Unit[] }

export type { Dataset, DatasetRequest, Datasets, Export, ExportRequest };
/** Requests of datasets.js to the car. */
export interface DatasetApi {
  datasets: () => Promise<Datasets>;
  beginDataset: (options: DatasetRequest) => Promise<Datasets>;
  changeDataset: (name: string, verb: 'resume' | 'cancel' | 'remove') => Promise<Datasets>;
  datasetFile: (name: string) => string;
  unlock: (code: string) => Promise<unknown>;
}
/** Requests of exports.js to the car. */
export interface ExportApi {
  begin: (options: ExportRequest) => Promise<Export>;
  exported: (id: string) => Promise<Export>;
  cancel: (id: string) => Promise<unknown>;
  exportFile: (id: string) => string;
}
