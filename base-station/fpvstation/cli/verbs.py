"""Verbs of `fpvstation` that use a store, with or without a running station."""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from fpvcar.recordings.export.progress import Progress
from fpvcar.recordings.export.table_writers import has_parquet
from fpvcar.runtime.units import MB, counted
from fpvstation import service, settings
from fpvstation.errors import StationError
from fpvstation.replicas.recall import claims_of
from fpvstation.replicas.remote import Archive, CopyProgress, PlaceFault
from fpvstation.replicas.remotes import remotes_of
from fpvstation.replicas.replicate import verify_replica
from fpvstation.replicas.restore import Restore, session_of
from fpvstation.replicas.tiers import archive_of
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store, trash_of
from fpvstation.store.verify import verify as verify_sessions


def verify(arguments: argparse.Namespace) -> int:
    """Read the whole store again, or one session; return 1 if any segment is bad."""
    store, disk = open_store(arguments.store)
    name = arguments.session
    sessions = [session_named(name, store)] if name else sorted(store.known())
    if arguments.remotes:
        return asyncio.run(_verify_remotes(arguments, store, disk, sessions))
    total = sum(_size(store, session) for session in sessions)
    progress = Progress(sys.stderr, total, time.monotonic())
    good = bad = done = 0
    for verdict in verify_sessions(store, disk, sessions, arguments.rate):
        done += verdict.size
        progress.to(done, time.monotonic())
        if verdict.fault:
            bad += 1
            progress.say(f"{verdict.path}: {verdict.fault}; {verdict.done}")
        else:
            good += 1
    progress.end()
    away = sum(store.is_unmounted(session) for session in sessions)
    if away:
        print(
            f"{counted(away, 'archived session')} not read: mount the archive; a bucket: "
            "verify --remotes"
        )
    print(f"good: {counted(good, 'segment')} ({done / MB:.0f} MB); bad: {bad}")
    return 1 if bad else 0


def _size(store: Store, session: str) -> int:
    """Return the bytes of a session; 0 if it cannot be read: its verification names the reason."""
    try:
        return store.extent(session)[0]
    except OSError:
        return 0


async def _verify_remotes(
    arguments: argparse.Namespace, store: Store, disk: Folder, sessions: list[str]
) -> int:
    """Check the replicas at the remotes and in the archive again; return 1 if any is bad."""
    replicas, configured = ReplicaLog(disk), settings.load(arguments.config)
    target = configured.tiers.archive
    if not (configured.replicas.targets or target):
        raise StationError(f"{arguments.config} has no remote: nothing to verify")
    root, failed = arguments.store.expanduser().absolute(), False
    if target:
        failed = await _verify_archive(archive_of(target, root), store, replicas, sessions)
    for remote in remotes_of(configured.replicas, root, "verify"):
        good = bad = faults = done = 0
        begun_s = time.monotonic()
        try:
            await remote.claim(store.id, known=True)
            for session in sessions:
                check = await verify_replica(
                    remote, session, store, replicas, asyncio.to_thread, time.time
                )
                good, bad = good + len(check.right), bad + len(check.bad)
                for name in check.bad:
                    print(
                        f"{remote.place}: {session}/{name}: bad or missing there; a running "
                        "station sends it again",
                        file=sys.stderr,
                    )
                done += _size(store, session)
                ahead_s = done / (arguments.rate * MB) - (time.monotonic() - begun_s)
                await asyncio.sleep(max(0.0, ahead_s))
        except PlaceFault as fault:
            print(f"fpvstation: {fault}", file=sys.stderr)
            faults = 1
        print(
            f"{remote.place}: good: {counted(good, 'segment')}; bad: {bad}"
            f"{'; check incomplete' if faults else ''}"
        )
        failed = failed or bool(bad or faults)
    return 1 if failed else 0


async def _verify_archive(
    archive: Archive, store: Store, replicas: ReplicaLog, sessions: list[str]
) -> bool:
    """Check the archived sessions again; return True if any is bad."""
    good, bad = 0, list[str]()
    await archive.claim(store.id, known=True)
    for session in sessions:
        record = store.archived(session)
        if record and record.place == archive.place:
            claims = await claims_of(archive, session, record, replicas)
            wrong = await archive.check(session, record.listed(session))
            good += len(record.segments) - len(wrong)
            bad += [f"{session}/{name}" for name in wrong]
            if not (wrong or any(len(sums) > 1 for sums in claims.values())):
                store.note_verified(session, time.time())
    for path in bad:
        print(f"{archive.place}: {path}: bad or missing there; recall the session", file=sys.stderr)
    print(f"{archive.place}: good: {counted(good, 'segment')}; bad: {len(bad)}")
    return bool(bad)


def rebuild(arguments: argparse.Namespace) -> int:
    """Rebuild the list of the page."""
    began_s = time.monotonic()
    open_store(arguments.store)
    bars: list[Progress] = []

    def on_progress(done: int, total: int) -> None:
        if not bars:
            bars.append(Progress(sys.stderr, total, began_s, "sessions"))
        bars[0].to(done, time.monotonic())

    count = service.rebuild(arguments.store, on_progress)
    for bar in bars:
        bar.end()
    took_s = time.monotonic() - began_s
    print(f"{counted(count, 'session')} listed ({count / took_s:.0f} a second)")
    return _rebuild_sidecars(arguments.store) if has_parquet() else 0


def _rebuild_sidecars(root: Path) -> int:
    """Write lost, stale and damaged sidecars; return 1 if any could not be written."""
    bar = Progress(sys.stderr, 100, time.monotonic(), "%")
    try:
        faults = service.rebuild_sidecars(
            root, lambda done, total: bar.to(100 * done / total, time.monotonic())
        )
    finally:
        bar.end()
    for fault in faults:
        print(f"fpvstation: no sidecar: {fault}", file=sys.stderr)
    return 1 if faults else 0


def rm(arguments: argparse.Namespace) -> int:
    store, _ = open_store(arguments.store)
    trash = trash_of(time.time())
    removed = store.remove(session_named(arguments.session, store), trash)
    print(f"{counted(len(removed), 'segment')} moved to {arguments.store / trash}")
    return 0


def session_named(name: str, store: Store) -> str:
    """Return the local session of that name or folder. Raises StationError."""
    sessions = sorted(store.known())
    matches = [session for session in sessions if name in (session, session.split("/")[-1])]
    if len(matches) != 1:
        last = ", ".join(session.split("/")[-1] for session in sessions[-3:]) or "none"
        raise StationError(f'"{name[:80]}" names {len(matches)} sessions; the latest are: {last}')
    return matches[0]


def restore(arguments: argparse.Namespace) -> int:
    """Restore a session; return 1 if any of its segments has no good copy."""
    store, disk = open_store(arguments.store)
    replicas, configured = ReplicaLog(disk), settings.load(arguments.config).replicas
    session = session_of(arguments.session, store, disk, replicas)
    if record := store.archived(session):
        raise StationError(f"{session} is in {record.place}: fpvstation recall {session}")
    root = arguments.store.expanduser().absolute()
    remotes = remotes_of(configured, root, "restore")
    phases = _Phases()
    work = Restore(session, store, disk, replicas, asyncio.to_thread, phases.show)
    try:
        result = asyncio.run(work.run(remotes))
    finally:
        phases.end()
    for fault in result.faults:
        print(f"fpvstation: {fault}", file=sys.stderr)
    for place, count in result.restored.items():
        print(f"{session}: {counted(count, 'segment')} restored from {place}")
    if result.present:
        print(f"{session}: {counted(result.present, 'segment')} already here and good")
    for name in result.missing:
        print(
            f"fpvstation: {name}: no good copy in trash or remotes; a running "
            "station fetches it if its car still has it",
            file=sys.stderr,
        )
    if not (result.present or result.restored or result.missing):
        print(
            f"fpvstation: {session} not found, neither here nor at the remotes in "
            f"{arguments.config}",
            file=sys.stderr,
        )
    return 0 if (result.present or result.restored) and not result.missing else 1


class _Phases:
    """Progress bars, one for each source of segments."""

    def __init__(self) -> None:
        self._source, self._bar = "", Progress(sys.stderr, 1, 0.0)

    def show(self, source: str, progress: CopyProgress) -> None:
        """Show the progress as a bar."""
        now_s = time.monotonic()
        if progress.total is not None:
            if source != self._source:
                self._bar.end()
                self._source = source
                self._bar = Progress(sys.stderr, progress.total, now_s)
            self._bar.to(progress.done, now_s)

    def end(self) -> None:
        self._bar.end()


def open_store(root: Path) -> tuple[Store, Folder]:
    """Open an existing store. Raises StationError."""
    disk = Folder(root)
    if disk.size(".fpvstation.json") is None:
        raise StationError(f"{root} is not a store: name one with --store DIR")
    store = Store(disk)
    store.open("")
    return store, disk
