// The shapes that pass between the seat's modules; for the type checker only.

import type { Downward, State, Stop, Welcome } from '../lib/types.js';

/** Actions that reconnect.js requests from the owner of the sockets. */
export type Act = { do: 'open' } | { do: 'close' } | { do: 'probe'; id: number }
  | { do: 'cancel'; id: number };
export interface Probe { id: number; sentMs: number }
/**
 *   up       frames or pongs come; dead after 300 ms without either, or after
 *            max(500 ms, 4 x the round trip) without a pong, whatever pictures come
 *   probing  both sockets closed; a small GET every 200 ms, at most 5 in flight, each
 *            given up after 2 s; the first answer shows that packets pass again
 *   opening  /ws/drive, then /ws/video; each step gets max(1 s, 4 x the round trip)
 *   parked   the car closed us for good (opened again elsewhere); a person must reopen it
 */
export type LinkState =
  | { kind: 'up'; heardMs: number; pongMs: number }
  | { kind: 'probing'; sinceMs: number; nextMs: number; inFlight: Probe[] }
  | { kind: 'opening'; deadlineMs: number; opened: boolean }
  | { kind: 'parked'; why: string };
/** See faultOf in link/link.js. */
export type LinkFault = '' | 'secure' | 'socket' | 'status';
export type LinkGrade = 'good' | 'slow' | 'none';

/** Callbacks for messages and changes of the link. */
export interface Listener {
  message: (message: Downward) => void;
  frame: (frame: ArrayBuffer) => void;
  welcomed: () => void;
  filming: () => boolean;
  changed: () => void;
}

/** The page's situation: one of these, never a mix of flags. */
export type Situation =
  | { kind: 'connecting'; stopWaits: boolean; fault?: LinkFault }
  | { kind: 'parked' }
  | { kind: 'lost'; sinceMs: number; driving: boolean; stopWaits: boolean; fault?: LinkFault }
  | { kind: 'late'; ms: number; limitMs: number }
  | {
      kind: 'stopped'; stop: Stop; driving: boolean; byUs: boolean; mayResume: boolean;
      leads: 'code' | 'take' | null;
      silenceMs: number;
    }
  | { kind: 'wheels'; words: string }
  | { kind: 'camera'; words: string }
  | { kind: 'taken'; by: string; free: boolean }
  | { kind: 'locked' }
  | { kind: 'watching'; driver: string | null; free: boolean }
  | { kind: 'encoder' }
  | { kind: 'coding'; words: string }
  | { kind: 'battery'; wishing: boolean }
  | { kind: 'ready'; letGo: boolean }
  | { kind: 'driving'; limited: boolean };

/** What the situation follows from. */
export interface Page {
  link: LinkState; welcome: Welcome | null; state: State | null; lostMs: number;
  lateMs: number | null; takenBy: string | null; pictureOld: boolean; wishing: boolean;
  pushedStop: boolean; stopWaits: boolean; linkFault: LinkFault;
}
