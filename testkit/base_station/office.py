"""Office in memory."""

from collections.abc import Mapping
from pathlib import Path

from fpvstation.replicas.remote import OnProgress
from fpvstation.store.sums_file import StoredSegment
from testkit.base_station.stored import sums_of

PLACE = "office:/store"


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
