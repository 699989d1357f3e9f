"""Locations of a session: its car, the station's store, the remotes."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fpvcar.library.drive_repository import CAR, DriveCopy
from fpvstation.settings import BUCKET_SCHEME
from fpvstation.store.archived import ArchivedSession
from fpvstation.store.disk import Folder
from fpvstation.store.replica_log import HERE, ReplicaLog, ReplicaState
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE, StoredSegment


class CarInventory:
    """Names and sizes of each car's segments, as last listed. Callable from any thread."""

    def __init__(self) -> None:
        self._sizes: dict[str, Mapping[str, int]] = {}

    def update(self, car: str, sizes: Mapping[str, int], everything: bool) -> None:
        """Record the segments a car lists; add to its previous list unless `everything`."""
        before = {} if everything else self._sizes.get(car, {})
        self._sizes[car] = {**before, **sizes}

    def forget(self, car: str) -> None:
        """Drop a car that was removed from the station."""
        self._sizes.pop(car, None)

    def count(self, segments: Iterable[tuple[StoredSegment, int | None]]) -> int:
        """Count how many of these segments of one car, with their sizes, the car still has."""
        return sum(
            self._sizes.get(path.partition("/")[0], {}).get(path.rpartition("/")[2]) == size
            for (path, _), size in segments
        )


class ReplicaIndex:
    """Replicas of the sessions of one store. Blocks."""

    def __init__(self, root: Path, store: Store, cars: CarInventory | None) -> None:
        self._store, self._disk, self._cars = store, Folder(root), cars or CarInventory()
        self._replicas = ReplicaLog(self._disk)

    def of(self, session: str) -> list[DriveCopy]:
        """Return the car's copy first, then the store's; [] if the session's files here cannot
        be read."""
        try:
            listed = self._store.listed(session)
            changed_s = self._disk.changed_s(f"{session}/{SUMS_FILE}")
            states = self._replicas.states(session, listed)
        except OSError:
            return []
        if not listed:  # the record of an archived session is damaged
            return []
        record = self._store.archived(session)
        if record:
            states = [state for state in states if state.place != HERE]
            changed_s = 0.0
        # The copy here, and the car's copy at that time, were verified on arrival.
        if changed_s and all(state.place != HERE for state in states):
            states.insert(0, ReplicaState(HERE, changed_s, True))
        copies = [DriveCopy(*state) for state in states]
        if record:
            tier = self._tier(session, record)
            copies.insert(0, DriveCopy(record.place, record.verified_s, True, tier))
        sizes = [(segment, self._store.size(segment)) for segment in listed]
        on_car = self._cars.count(sizes)
        if on_car:
            copies.insert(0, DriveCopy(CAR, changed_s, on_car == len(listed)))
        return copies

    def _tier(self, session: str, record: ArchivedSession) -> str:
        if record.place.startswith(BUCKET_SCHEME):
            return "bucket"
        return "away" if self._store.is_away(session) else "folder"
