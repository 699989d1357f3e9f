"""Open store, and a segment of a drive that is stored in the way of a pull."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fpvcar.library import checksums
from fpvcar.runtime.units import MIB
from fpvcar.wire.station import Sums
from fpvstation.store.disk import Disk, Folder
from fpvstation.store.store import Store

CAR, SESSION = "Plague", "Plague/2026-11-21/Plague-20261121T193100Z"
NAME = "Plague-20261121T193100Z-0001.mcap"
SECOND, THIRD = (NAME.replace("0001", number) for number in ("0002", "0003"))
DATA = bytes(range(256)) * 5000


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that would block, in place of a thread."""
    return function(*arguments)


def opened(disk: Disk, known: str = "", utc_s: Callable[[], float] = time.time) -> Store:
    """Return the store on a disk, opened as at a start of the station."""
    store = Store(disk, utc_s=utc_s)
    store.open(known)
    return store


def sums_of(data: bytes) -> Sums:
    summing = checksums.Checksummer()
    summing.add(data)
    return summing.sums()


def new_store(root: Path) -> Store:
    """Make and open a store in a folder that does not exist yet."""
    root.mkdir()
    store = Store(Folder(root))
    store.open("")
    return store


def put(store: Store, name: str = NAME, data: bytes = DATA, car: str = CAR) -> Sums:
    """Store a segment in the way of a pull."""
    made = sums_of(data)
    for number in store.missing(car, name, made):
        piece = data[number * MIB : (number + 1) * MIB]
        store.write(car, name, made, number, piece)
    store.publish(car, name, made)
    return made
