"""Verbs of `fpvstation` that use a store, with or without a running station."""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from fpvcar.recordings.export.progress import Progress
from fpvcar.runtime.units import MB, counted
from fpvstation import service, settings
from fpvstation.mirror.mirror import Rdcp
from fpvstation.mirror.replicate import CopyProgress, OfficeFault, judge_copy
from fpvstation.mirror.restore import Restore, session_of
from fpvstation.store.disk import Folder
from fpvstation.store.identity import StoreError
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store, trash_of
from fpvstation.store.verify import verify as judged


def verify(arguments: argparse.Namespace) -> int:
    """Read the whole store again, or one session; return 1 if any segment is bad."""
    store, disk = opened(arguments.store)
    word = arguments.session
    wanted = [_named(word, store)] if word else sorted(store.known())
    if arguments.office:
        return asyncio.run(_verify_offices(arguments, store, disk, wanted))
    whole = sum(store.extent(session)[0] for session in wanted)
    shown = Progress(sys.stderr, whole, time.monotonic())
    good = bad = size = 0
    for one in judged(store, disk, wanted, arguments.rate):
        size += one.size
        shown.to(size, time.monotonic())
        if one.fault:
            bad += 1
            shown.say(f"{one.path}: {one.fault}; {one.done}")
        else:
            good += 1
    shown.end()
    print(f"right: {counted(good, 'segment')} ({size / MB:.0f} MB); not right: {bad}")
    return 1 if bad else 0


async def _verify_offices(
    arguments: argparse.Namespace, store: Store, disk: Folder, sessions: list[str]
) -> int:
    """Check the replicas at the offices again, without moving them; return 1 if any is bad."""
    copies, office = ReplicaLog(disk), settings.load(arguments.config).office
    if not office.targets:
        raise StoreError(f"{arguments.config} names no office: nothing to verify")
    root, failed = arguments.store.expanduser().absolute(), False
    for target in office.targets:
        place = Rdcp(target, root, office.options, "verify")
        good = bad = faults = size = 0
        begun_s = time.monotonic()
        try:
            await place.claim(store.id, known=True)
            for session in sessions:
                found = await judge_copy(
                    place, session, store, copies, asyncio.to_thread, time.time
                )
                good, bad = good + len(found.right), bad + len(found.bad)
                for name in found.bad:
                    print(
                        f"{target}: {session}/{name}: bad or gone there; a station "
                        "that runs sends it again",
                        file=sys.stderr,
                    )
                size += store.extent(session)[0]
                ahead_s = size / (arguments.rate * MB) - (time.monotonic() - begun_s)
                await asyncio.sleep(max(0.0, ahead_s))
        except OfficeFault as fault:
            print(f"fpvstation: {fault}", file=sys.stderr)
            faults = 1
        print(
            f"{target}: right: {counted(good, 'segment')}; not right: {bad}"
            f"{'; not all were judged' if faults else ''}"
        )
        failed = failed or bool(bad or faults)
    return 1 if failed else 0


def rebuild(arguments: argparse.Namespace) -> int:
    """Rebuild the list of the page."""
    began_s = time.monotonic()
    opened(arguments.store)
    shown: list[Progress] = []

    def tell(done: int, total: int) -> None:
        if not shown:
            shown.append(Progress(sys.stderr, total, began_s, "sessions"))
        shown[0].to(done, time.monotonic())

    count = service.rebuild(arguments.store, tell)
    for one in shown:
        one.end()
    took_s = time.monotonic() - began_s
    print(f"{counted(count, 'session')} listed ({count / took_s:.0f} a second)")
    return 0


def rm(arguments: argparse.Namespace) -> int:
    store, _ = opened(arguments.store)
    trash = trash_of(time.time())
    gone = store.remove(_named(arguments.session, store), trash)
    print(f"{counted(len(gone), 'segment')} moved to {arguments.store / trash}")
    return 0


def _named(word: str, store: Store) -> str:
    """Return the local session of that name or folder. Raises StoreError."""
    there = sorted(store.known())
    found = [one for one in there if word in (one, one.split("/")[-1])]
    if len(found) != 1:
        last = ", ".join(one.split("/")[-1] for one in there[-3:]) or "none"
        raise StoreError(f'"{word[:80]}" names {len(found)} sessions; the last ones are: {last}')
    return found[0]


def restore(arguments: argparse.Namespace) -> int:
    """Restore a session; return 1 if any of its segments has no good copy."""
    store, disk = opened(arguments.store)
    copies, office = ReplicaLog(disk), settings.load(arguments.config).office
    session = session_of(arguments.session, store, disk, copies)
    root = arguments.store.expanduser().absolute()
    offices = [Rdcp(one, root, office.options, "restore") for one in office.targets]
    shown = _Phases()
    work = Restore(session, store, disk, copies, asyncio.to_thread, shown.tell)
    try:
        done = asyncio.run(work.run(offices))
    finally:
        shown.end()
    for fault in done.faults:
        print(f"fpvstation: {fault}", file=sys.stderr)
    for place, count in done.came.items():
        print(f"{session}: {counted(count, 'segment')} back from {place}, and right")
    if done.here:
        print(f"{session}: {counted(done.here, 'segment')} here already, and right")
    for name in done.missing:
        print(
            f"fpvstation: {name}: no good copy in trash or offices; a station that "
            "runs fetches it while its car has it",
            file=sys.stderr,
        )
    if not (done.here or done.came or done.missing):
        print(
            f"fpvstation: nothing is known of {session}, here or at the offices of "
            f"{arguments.config}",
            file=sys.stderr,
        )
    return 0 if (done.here or done.came) and not done.missing else 1


class _Phases:
    """Progress bars, one for each source of segments."""

    def __init__(self) -> None:
        self._what, self._shown = "", Progress(sys.stderr, 1, 0.0)

    def tell(self, what: str, now: CopyProgress) -> None:
        """Show the progress as a bar."""
        now_s = time.monotonic()
        if now.total is not None:
            if what != self._what:
                self._shown.end()
                self._what = what
                self._shown = Progress(sys.stderr, now.total, now_s)
            self._shown.to(now.done, now_s)

    def end(self) -> None:
        self._shown.end()


def opened(root: Path) -> tuple[Store, Folder]:
    """Open an existing store. Raises StoreError."""
    disk = Folder(root)
    if disk.size(".fpvstation.json") is None:
        raise StoreError(f"{root} is no store: say which one with --store DIR")
    store = Store(disk)
    store.open("")
    return store, disk
