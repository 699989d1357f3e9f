"""Background chores of a station: the catalogue follows the store, old files expire, a
bound is kept. Each chore runs and fails on its own; its last fault is in /healthz."""

import asyncio
import contextlib
import datetime
import functools
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fpvcar.runtime.files import TEMPORARY
from fpvcar.runtime.texts import BOTH, SAYS, Text, fault_text
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.errors import CHORE_LIST, INTERNAL, StationError
from fpvstation.query.keeper import SidecarKeeper
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.tiers import Tiers, TiersBusy
from fpvstation.settings import TierSettings
from fpvstation.snapshots.tools import SNAPSHOTS
from fpvstation.store.bound import Bound
from fpvstation.store.store import INCOMING, TRASH, Store

EVERY_S = 3600.0
KEPT = datetime.timedelta(days=30)
"""Keeping period of trash and unfinished files."""
TEMPORARY_KEPT = datetime.timedelta(days=1)
FIRST = datetime.date(2025, 1, 1)
"""Trash of an earlier date was moved there while the clock was wrong."""
SYNC_S, SYNC_MOST_S, SYNC_SHARE = 2.0, 20.0, 50.0
"""Pause between two syncs of the catalogue: SYNC_SHARE times the duration of the last
sync, within these bounds. A new segment is on the page within a minute."""
log = logging.getLogger("fpvstation")
Run = Callable[[], Iterator[Text]]
"""Run a chore once, and yield a fault for each part of it that failed. May block, and
raise OSError, StationError and sqlite3.Error."""


class ChoreState(msgspec.Struct):
    """State of one chore, for the page and /healthz."""

    name: Text
    fault: Text | None = None
    """Faults of the last run; None if it succeeded."""
    fault_s: float = 0.0
    """Time of the last run with a fault, UTC; 0: never."""


@dataclass
class Chore:
    """Background chore. `pause_s` returns the pause after a run from its duration."""

    name: Text
    run: Run
    pause_s: Callable[[float], float] = lambda took_s: EVERY_S
    state: ChoreState = field(init=False)

    def __post_init__(self) -> None:
        self.state = ChoreState(self.name)

    def once(self) -> None:
        """Run the chore and keep its faults; log a fault that is new. Blocks."""
        fault: Text | None
        try:
            faults = list(self.run())
            fault = functools.reduce(_both, faults) if faults else None
        except (OSError, StationError, sqlite3.Error) as error:
            fault = fault_text(error)
        except Exception as error:  # a defect here must not end the other chores
            fault = INTERNAL(reason=repr(error))
            log.exception("%s", self.name)
        if fault:
            self.state.fault_s = time.time()
        if fault and fault != self.state.fault:
            log.error("%s: %s", self.name, fault)
        self.state.fault = fault


def _both(first: Text, second: Text) -> Text:
    return BOTH(first=first, second=second)


class Chores:
    """All chores of one station."""

    def __init__(
        self, chores: Sequence[Chore], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._chores, self._sleep = chores, sleep

    @property
    def states(self) -> list[ChoreState]:
        return [chore.state for chore in self._chores]

    async def run(self) -> None:
        """Run each chore again and again until cancelled."""
        await asyncio.gather(*map(self._repeat, self._chores))

    async def _repeat(self, chore: Chore) -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.to_thread(chore.once)
            await self._sleep(chore.pause_s(time.monotonic() - began_s))


def chores_of(
    store: Store,
    root: Path,
    bound: Bound | None,
    catalogue: Catalogue,
    archive: Run | None = None,
    sidecars: SidecarKeeper | None = None,
) -> list[Chore]:
    def now() -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    chores = [
        Chore(CHORE_LIST, lambda: follow(catalogue), sync_pause_s),
        Chore(Text("chore_trash", "trash"), lambda: expire_trash(store, root, now())),
        Chore(
            Text("chore_unfinished", "unfinished files"),
            lambda: expire_unfinished(store, root, now()),
        ),
    ]
    if bound:
        chores.append(Chore(Text("chore_bound", "bound"), bound.run, bound.pause_s))
    if archive:
        chores.append(Chore(Text("chore_archive", "archive"), archive))
    if sidecars:
        chores.append(Chore(Text("chore_sidecars", "sidecars"), sidecars.run, sidecars.pause_s))
    return chores


def follow(catalogue: Catalogue) -> Iterator[Text]:
    """Bring the catalogue up to the store; yield a fault for each session left out.
    Raises OSError, sqlite3.Error."""
    catalogue.sync()
    for session, fault in catalogue.faults.items():
        yield SAYS(place=session, reason=fault)


def sync_pause_s(took_s: float) -> float:
    """Return the pause after a sync of the catalogue that took so long."""
    return min(SYNC_MOST_S, max(SYNC_S, SYNC_SHARE * took_s))


def expire_trash(store: Store, root: Path, now: datetime.datetime) -> Iterator[Text]:
    """Delete days of trash older than KEPT; yield each fault. Raises OSError, StationError."""
    store.check()
    for day in sorted((root / TRASH).glob("????-??-??")):
        try:
            removed = datetime.date.fromisoformat(day.name)
        except ValueError:
            continue
        if not day.is_dir():
            continue
        if removed < FIRST:
            if now.date() >= FIRST:  # its 30 days begin now
                with contextlib.suppress(OSError):  # today has a folder: tomorrow
                    day.rename(day.with_name(now.date().isoformat()))
        elif now.date() - removed > KEPT:
            yield from _remove_tree(day)


def keep_tiers(tiers: Tiers, tier_settings: TierSettings) -> Iterator[Text]:
    """Complete interrupted moves, and archive the sessions that are due; yield each fault. Raises
    OSError, StationError."""
    with contextlib.suppress(TiersBusy), tiers.alone():
        yield from asyncio.run(tiers.resume())
        for due in tiers.due(tier_settings):
            try:
                asyncio.run(tiers.archive(due.session))
                log.info("%s archived: %s", due.session, due.reason)
            except (PlaceFault, StationError, OSError) as fault:
                yield fault_text(fault)
                return


def _remove_tree(path: Path) -> Iterator[Text]:
    """Delete as much of a folder as possible; yield the first fault, if any."""
    shutil.rmtree(path, ignore_errors=True)
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as fault:
        yield fault_text(fault)


def expire_unfinished(store: Store, root: Path, now: datetime.datetime) -> Iterator[Text]:
    """Delete segments that stayed incomplete for KEPT, and temporary files that a kill left
    anywhere in the store; yield those that could not be deleted. Raises OSError, StationError."""
    store.check()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != SNAPSHOTS]
        unfinished = Path(folder).is_relative_to(root / INCOMING)
        for name in files:
            temporary = TEMPORARY.fullmatch(name)
            if temporary or unfinished:
                kept = TEMPORARY_KEPT if temporary else KEPT
                yield from _expire(Path(folder, name), (now - kept).timestamp())


def _expire(path: Path, oldest_s: float) -> Iterator[Text]:
    """Delete a file last written before `oldest_s`; yield the fault if that fails."""
    try:
        if path.lstat().st_mtime < oldest_s:
            path.unlink()
    except FileNotFoundError:
        pass
    except OSError as fault:
        yield fault_text(fault)
