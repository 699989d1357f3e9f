"""A segment of a drive, stored in the way of a pull."""

from pathlib import Path

from fpvcar.library import checksums
from fpvcar.runtime.units import MIB
from fpvcar.wire.station import Sums
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

CAR, SESSION = "Plague", "Plague/2026-11-21/Plague-20261121T193100Z"
NAME = "Plague-20261121T193100Z-0001.mcap"
DATA = bytes(range(256)) * 5000


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
