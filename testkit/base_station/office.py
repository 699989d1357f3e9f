"""Replicator with an office in memory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fpvstation.replicas.pending import LATEST_S
from fpvstation.replicas.remote import OnProgress
from fpvstation.replicas.replicate import Replicator
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment
from testkit.base_station.stored import DATA, NAME, SESSION, sums_of

PLACE = "office:/store"


SECOND = NAME.replace("0001", "0002")


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class PlayedOffice:
    """Office in memory; `faults` are raised one after the other."""

    place = PLACE

    def __init__(self, root: Path) -> None:
        self.root, self.there = root, dict[str, bytes]()
        self.sent, self.faults = list[tuple[str, bool]](), list[Exception]()
        self.known = list[bool]()

    def _fault(self) -> None:
        if self.faults:
            raise self.faults.pop(0)

    async def claim(self, store: str, known: bool) -> None:
        assert store
        self.known.append(known)

    async def send(
        self, session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress
    ) -> None:
        self._fault()
        self.sent.append((session, anew))
        for one in listed:
            if anew or one.path not in self.there:
                self.there[one.path] = (self.root / one.path).read_bytes()

    async def check(self, session: str, listed: list[StoredSegment]) -> list[str]:
        self._fault()
        return [
            one.path.rpartition("/")[2]
            for one in listed
            if sums_of(self.there.get(one.path, b"")).sha256 != one.sha256
        ]

    async def fetch(self, session: str, on_progress: OnProgress) -> Mapping[str, str]:
        self._fault()
        found = {}
        for path, data in self.there.items():
            if path.startswith(session):
                name = path.rpartition("/")[2]
                (self.root / "came").mkdir(exist_ok=True)
                (self.root / "came" / name).write_bytes(data)
                found[name] = f"came/{name}"
        return found


class Rig:
    """Store with its records, and the office."""

    def __init__(self, root: Path) -> None:
        self.now_s, self.utc_s = 1000.0, 5.0
        self.root, disk = root, Folder(root)
        self.copies, self.office = ReplicaLog(disk), PlayedOffice(root)
        self.store = Store(disk, lambda session: self.replicator.queue(session))
        self.store.open("")
        self.replicator = Replicator(
            self.office, self.store, self.copies, act, self._clock_s, lambda: self.utc_s
        )

    def _clock_s(self) -> float:
        return self.now_s

    async def later(self) -> None:
        """Run a round when all is due."""
        self.now_s += LATEST_S
        await self.replicator.once(True)

    def bend(self, name: str = NAME) -> None:
        """Damage a byte on the local disk."""
        (self.root / SESSION / name).write_bytes(b"?" + DATA[1:])
