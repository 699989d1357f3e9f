"""What a store does by itself now and then: what is old goes, a bound is kept, and the
catalogue follows."""

import asyncio
import contextlib
import datetime
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fpvstation.catalogue import Catalogue
from fpvstation.identity import StoreError
from fpvstation.store import INCOMING, TRASH, Store

EVERY_S = 3600.0
KEPT = datetime.timedelta(days=30)
"""What people removed, and what came in part and never whole, stays so long."""
FIRST = datetime.date(2025, 1, 1)
"""Nobody removed anything before: a clock that says so stands wrong."""
SYNC_S, SYNC_MOST_S, SYNC_SHARE = 2.0, 20.0, 50.0
"""How long after a look through the store the next one begins: so many times what it
took, within these bounds. What came is on the page within a minute."""
log = logging.getLogger("fpvstation")


async def keep_tidy(
    store: Store, root: Path, most: int,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:  # fmt: skip
    """Until it is cancelled. `most`: bytes of all segments; 0 is no bound."""
    while True:
        now = datetime.datetime.now(datetime.UTC)
        try:
            await asyncio.to_thread(expire, store, root, now)
            if most:
                await asyncio.to_thread(keep_to, store, root, most)
        except (OSError, StoreError) as fault:
            log.warning("%s", fault)
        await sleep(EVERY_S)


def expire(store: Store, root: Path, now: datetime.datetime) -> None:
    """Deletes trash and unfinished files that are older than KEPT. Raises OSError,
    StoreError."""
    store.check()
    for day in (root / TRASH).glob("????-??-??"):
        try:
            removed = datetime.date.fromisoformat(day.name)
        except ValueError:
            continue
        if removed < FIRST:
            if now.date() >= FIRST:  # its 30 days begin now
                with contextlib.suppress(OSError):  # today has a folder: tomorrow
                    day.rename(day.with_name(now.date().isoformat()))
        elif now.date() - removed > KEPT:
            shutil.rmtree(day)
    oldest_s = (now - KEPT).timestamp()
    for folder, _, files in os.walk(root / INCOMING, topdown=False):
        for name in files:
            part = Path(folder, name)
            if part.lstat().st_mtime < oldest_s:
                part.unlink()


def keep_to(store: Store, root: Path, most: int) -> None:
    """Deletes the oldest sessions until all others fit, but never the newest one; they
    are not fetched again. Raises OSError, StoreError."""
    store.check()
    sessions = sorted(store.sessions(), key=lambda one: one.split("/")[1:])
    sizes = {
        one: sum(_size(root / stored.path) for stored in store.listed(one))
        for one in sessions
    }
    for session in sessions[:-1]:
        if sum(sizes.values()) <= most:
            break
        log.info("%s goes: the store is full", session)
        store.remove(session)
        del sizes[session]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


async def follow(catalogue: Catalogue) -> None:
    """Keeps it as the store is, until it is cancelled."""
    said = ""
    while True:
        began_s = time.monotonic()
        try:
            await asyncio.to_thread(catalogue.sync)
            fault = ""
        except (OSError, sqlite3.Error) as error:
            fault = str(error)
        if fault and fault != said:
            log.error("the catalogue does not follow the store: %s", fault)
        said = fault
        wait_s = SYNC_SHARE * (time.monotonic() - began_s)
        await asyncio.sleep(min(SYNC_MOST_S, max(SYNC_S, wait_s)))
