/** Texts of a base station, from lang/: storage used, pending bytes,
 * current transfers. */

import {ago, counted, dates, listed, titled} from '../../lang/forms.js';
import {t, fill, joined, said} from '../../lang/words.js';
import {STRINGS} from '../strings.js';

/** @import {CarState, ChoreState, RemoteState, Storage} from '../types.js' */

const {size} = STRINGS;
const time = dates({dateStyle: 'medium', timeStyle: 'short'});
const clock = dates({timeStyle: 'short'});

/** How much waits, how fast it goes, and how long that takes. @param {CarState | RemoteState} one */
const moving = ({waiting_bytes: bytes, rate}) => [size(bytes), ...rate ? [`${size(rate)}/s`,
  fill(t.recordings.toGo, {time: STRINGS.spoken(Math.ceil(bytes / rate))})] : []];

export const STATION_STRINGS = {
  /** @param {Storage['store']} store @param {number} waits */
  brief: ({free}, waits) => listed([
    fill(t.recordings.free, {size: size(free)}),
    waits ? fill(t.recordings.waits, {size: size(waits)}) : '',
  ]),
  /** @param {Storage['store']} store */
  store: ({path, sessions, segments, bytes, free, total, archived, archived_bytes: far}) => joined(
    fill(t.recordings.store, {
      path, sessions: counted(t.recordings.countOfSessions, sessions),
      files: STRINGS.files(segments), size: size(bytes), free: size(free), total: size(total),
    }),
    archived ? counted(t.recordings.inArchive, archived, {size: size(far)}) : '',
  ),
  /** The newest one of today has a time only. @param {number} count @param {number} seconds */
  snapshots: (count, seconds) => {
    const today = new Date(seconds * 1000).toDateString() === new Date().toDateString();
    return count ? counted(t.recordings.snapshots, count, {time: (today ? clock : time)(seconds * 1000)}) : '';
  },
  /** @param {number} unread @param {Storage['why_anew']} why @param {ChoreState[]} chores */
  catalogue: (unread, why, chores) => joined(
    unread ? counted(t.recordings.unlisted, unread) : '',
    why ? fill(t.recordings.listedAnew, {why: said(why)}) : '',
    ...chores.filter(({fault}) => fault).map(({name, fault, fault_s: seconds}) =>
      fill(t.recordings.choreFault, {name: said(name), fault: said(fault), time: time(seconds * 1000)})),
  ),
  /** @param {CarState} car */
  car: (car) => {
    const {waiting, state} = car;
    if (waiting) return listed([counted(t.recordings.filesWait, waiting, {state: said(state) || 'ok'}), ...moving(car)]);
    const late = Object.values(car.late);
    if (late.length) return counted(t.recordings.lateFiles, late.length, {why: said(late[0])});
    return said(state) || t.recordings.allHere;
  },
  /** @param {RemoteState} remote */
  remote: (remote) => {
    const {waiting, complete, waits_until: until, oldest_s: seconds} = remote;
    const fault = said(remote.state);
    const state = fault || (until ? fill(t.recordings.waitsUntil, {time: until}) : 'ok');
    const oldest = seconds
      ? fill(t.recordings.oldestCopy, {ago: ago(Date.now() / 1000 - seconds)}) : '';
    const copied = {state, complete, total: complete + waiting};
    if (waiting) return listed([fill(t.recordings.sessionsCopied, copied), ...moving(remote), oldest]);
    return listed([fault || t.recordings.allThere, oldest]);
  },
  /** @param {RemoteState} remote */
  fault: ({last_fault: fault, fault_s: seconds, state}) =>
    (fault && said(fault) !== said(state) ? titled(time(seconds * 1000), said(fault)) : ''),
  /** @param {CarState} car */
  card: ({card_free: free, card_total: total}) =>
    (total ? fill(t.recordings.card, {free: size(free), total: size(total)}) : ''),
  pulling: (/** @type {string} */ car) => fill(t.recordings.pulling, {car}),
  sending: (/** @type {string} */ remote) => fill(t.recordings.sendingTo, {place: remote}),
  cardOf: (/** @type {string} */ car) => fill(t.recordings.cardOf, {car}),
  failed: (/** @type {string} */ why) => fill(t.recordings.failedFigures, {why}),
};
