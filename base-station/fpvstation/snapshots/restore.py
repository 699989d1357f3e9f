"""Restore of recordings from a snapshot, by its own list of checksums.

    SHA256SUMS of the snapshot -> segments that are wrong or missing here -> copied to .incoming
            -> verified, published, listed

Segments that are here and right stay unchanged, also those that are later than the snapshot.
"""

import asyncio
import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

from fpvcar.recordings import names
from fpvstation.errors import StationError
from fpvstation.replicas.replicate import adopt_files
from fpvstation.replicas.restore import RestoreResult
from fpvstation.snapshots.tools import Snapshot
from fpvstation.store.replica_log import segments_of
from fpvstation.store.store import INCOMING, Store
from fpvstation.store.sums_file import SUMS_FILE, stored_in

FOLDER = f"{INCOMING}/snapshot"


def session_and_file(text: str) -> tuple[str, str]:
    """Split SESSION or SESSION/FILE; the file is "" for the whole session."""
    session, _, name = text.rstrip("/").rpartition("/")
    return (session, name) if session and names.parse(name) else (text.rstrip("/"), "")


def time_of(text: str, now: datetime.datetime) -> float:
    """Return a local time as UTC; a time without a date is of today. Raises StationError."""
    for parse in (
        datetime.datetime.fromisoformat,
        lambda text: datetime.datetime.combine(now.date(), datetime.time.fromisoformat(text)),
    ):
        try:
            return parse(text).timestamp()
        except (ValueError, OverflowError):
            pass
    raise StationError(f'"{text[:80]}" refused: expected a time such as 14:00, or {now:%F %H:%M}')


def at(snapshots: Sequence[Snapshot], time_s: float) -> Snapshot:
    """Return the newest snapshot of that time or earlier. Raises StationError."""
    earlier = [snapshot for snapshot in snapshots if snapshot.at_s <= time_s]
    if not earlier:
        oldest = f"the oldest is of {local(snapshots[0].at_s)}" if snapshots else "there are none"
        raise StationError(f"no snapshot of {local(time_s)} or earlier: {oldest}")
    return earlier[-1]


def local(time_s: float) -> str:
    """Format a time as date and time of this machine's zone."""
    return f"{datetime.datetime.fromtimestamp(time_s):%F %T}"


def listed_in(snapshot: Snapshot, session: str) -> dict[str, str]:
    """Return name and checksum of each segment that a snapshot lists; {} for an absent session."""
    try:
        text = (snapshot.path / session / SUMS_FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return segments_of(stored_in(session, text))


def restore(store: Store, root: Path, session: str, name: str, snapshot: Snapshot) -> RestoreResult:
    """Restore a session from a snapshot, or one file of it. Raises StationError, OSError;
    segments that were restored before stay."""
    wanted, result = listed_in(snapshot, session), RestoreResult()
    if name:
        wanted = {name: wanted[name]} if name in wanted else {}
    if not wanted:
        raise StationError(f"{snapshot.path} has no {session}{'/' * bool(name)}{name}")
    store.check()
    for finding in store.audit(session):
        result.faults.append(f"{finding.path}: {finding.fault}; {finding.done}")
    for segment in store.listed(session):
        segment_name = segment.path.rpartition("/")[2]
        if wanted.get(segment_name) == segment.sha256 and not store.verify_segment(segment):
            result.present += 1
            del wanted[segment_name]
    store.want_again(set(wanted.values()))
    paths = {}
    for name in wanted:
        paths[name] = f"{FOLDER}/{session}/{name}"
        (root / paths[name]).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(snapshot.path / session / name, root / paths[name])
        except FileNotFoundError:
            del paths[name]
    work = adopt_files(store, session, paths, wanted, asyncio.to_thread)
    try:
        adopted = segments_of(asyncio.run(work))
    finally:
        store.clear(paths.values())
    if adopted:
        result.restored[str(snapshot.path)] = len(adopted)
    result.missing = sorted(wanted.keys() - adopted.keys())
    return result
