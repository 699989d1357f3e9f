"""Bound of a store: evicted sessions, their order, and protected sessions."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.stored import CAR, DATA, NAME, put, sums_of

from fpvstation.store.bound import AGAIN_S, EVERY_S, FIRST_S, UNSURE_S, Bound
from fpvstation.store.replica_log import DAY_S, EVICTED, segments_of

SIZE, NOW_S = len(DATA), FIRST_S + 700 * DAY_S
OFFICE, SECOND = "nas:/drives", "attic:/drives"


def named(day: str, car: str = CAR) -> str:
    return f"{car}-{day}T193100Z-0001.mcap"


class Rig(Station):
    """Station with a bound; `unsure` are the sessions to verify again."""

    def __init__(self, home: Path, *places: str) -> None:
        super().__init__(home)
        self.utc_s, self.places, self.unsure = NOW_S, places, list[str]()
        self.bound = Bound(
            self.store, self.disk, self.copies, 0, places, self._judge_soon, self.clock_s
        )

    def _judge_soon(self, sessions: Iterable[str]) -> None:
        self.unsure = list(sessions)

    def add(self, day: str, car: str = CAR, arrived_s: float = NOW_S - 60.0) -> str:
        """Store a session of that day; return its folder."""
        name = named(day, car)
        put(self.store, name, DATA, car)
        path = next(self.root.glob(f"{car}/*/*/{name}"))
        os.utime(path, (arrived_s, arrived_s))
        return str(path.parent.relative_to(self.root))

    def judged(self, session: str, *places: str, ago_s: float = 60.0) -> None:
        """Record that the remotes have a session, verified at that age."""
        segments = segments_of(self.store.listed(session))
        for place in places or self.places:
            self.copies.record(session, place, segments, self.utc_s - ago_s)

    def keep(self, most: int) -> list[str]:
        """Run the bound with room for so many sessions; return its faults."""
        self.bound._most = most * SIZE
        return list(map(str, self.bound.run()))

    def left(self) -> set[str]:
        return set(self.store.sessions())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, OFFICE, SECOND)


@pytest.fixture
def ring(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_bound_without_offices_evicts_the_oldest_but_never_the_newest(ring: Rig) -> None:
    days = [ring.add(f"202611{day}") for day in (21, 22, 23)]
    assert ring.keep(3) == [] and ring.left() == set(days)
    assert ring.keep(2) == [] and ring.left() == set(days[1:])
    assert not list(ring.root.glob(f"{CAR}/2026-11-21")), "no empty folders"
    (fault,) = ring.keep(0)
    assert "the rest is the newest session" in fault and ring.left() == {days[2]}


def test_eviction_is_no_removal_and_ends_when_segment_returns(ring: Rig) -> None:
    old, _ = ring.add("20261121"), ring.add("20261122")
    ring.keep(1)
    sha256 = sums_of(DATA).sha256
    assert ring.store.removed() == set()
    assert ring.store.evicted(CAR, named("20261121"), sha256)
    assert not ring.store.evicted(CAR, named("20261122"), sha256)
    assert not ring.store.evicted(CAR, named("20261121"), "0" * 64)
    assert ring.store.audit(old) == [], "what was evicted is not missing"
    ring.add("20261121")
    assert not ring.store.evicted(CAR, named("20261121"), sha256)


def test_bound_orders_two_cars_by_time_of_recording(ring: Rig) -> None:
    oldest = ring.add("20261121", "Zebra")
    newest = ring.add("20261122", "Arrow")
    ring.keep(1)
    assert ring.left() == {newest} and oldest not in ring.left()


def test_bound_with_a_wrong_clock_orders_by_arrival(ring: Rig) -> None:
    old = ring.add("20261121", arrived_s=NOW_S - 9 * DAY_S)
    epoch = ring.add("19700101", arrived_s=NOW_S - 8 * DAY_S)
    future = ring.add("20991231", arrived_s=NOW_S - 7 * DAY_S)
    newest = ring.add("20261201")
    for room, gone in ((3, old), (2, epoch), (1, future)):
        assert ring.keep(room) == [] and gone not in ring.left()
    assert ring.left() == {newest}


def test_bound_evicts_sessions_of_unknown_age_last(ring: Rig) -> None:
    unknown = [ring.add(f"1970010{day}", arrived_s=day * DAY_S) for day in (1, 2)]
    known = ring.add("20261121", arrived_s=DAY_S)
    ring.keep(2)
    assert known not in ring.left()
    ring.keep(1)
    assert ring.left() == {unknown[1]}


def test_bound_never_evicts_a_session_that_an_office_lacks(rig: Rig) -> None:
    lacking, there, newest = (rig.add(f"202611{day}") for day in (21, 22, 23))
    rig.judged(lacking, OFFICE)
    rig.judged(there)
    (fault,) = rig.keep(1)
    assert rig.left() == {lacking, newest}, "the next one goes instead"
    assert f"without a copy at every remote: 1 (the oldest: {lacking})" in fault
    assert fault.startswith("1 MB over the limit of 1 MB")
    assert not rig.bound.kept and rig.bound.pause_s(0.1) == AGAIN_S
    rig.judged(lacking)
    assert rig.keep(1) == [] and rig.left() == {newest}
    assert rig.bound.kept and rig.bound.pause_s(0.1) == EVERY_S


def test_bound_has_old_copies_judged_before_it_evicts(rig: Rig) -> None:
    old, newest = rig.add("20261121"), rig.add("20261122")
    rig.judged(old, ago_s=DAY_S + 1.0)
    assert rig.keep(1) == [] and rig.unsure == [old], "no fault yet"
    rig.utc_s += UNSURE_S
    (fault,) = rig.keep(1)
    assert "no remote has verified for a day: 1" in fault
    assert rig.left() == {old, newest}
    rig.judged(old)
    assert rig.keep(1) == [] and rig.unsure == [] and rig.left() == {newest}


def test_bound_takes_a_judgement_in_the_future_for_none(rig: Rig) -> None:
    old, newest = rig.add("20261121"), rig.add("20261122")
    rig.judged(old, ago_s=-2 * DAY_S)
    rig.keep(1)
    assert rig.left() == {old, newest}


def test_bound_spares_a_session_with_a_damaged_list(ring: Rig) -> None:
    old, _ = ring.add("20261121"), ring.add("20261122")
    sums = ring.root / old / "SHA256SUMS"
    sums.write_bytes(sums.read_bytes() + b"x\n")
    (fault,) = ring.keep(1)
    assert "has a damaged list" in fault and old in ring.left()


def test_session_that_grew_since_the_judgement_is_not_evicted(rig: Rig) -> None:
    old, newest = rig.add("20261121"), rig.add("20261122")
    rig.judged(old)
    put(rig.store, NAME.replace("0001", "0002"), b"later")
    rig.keep(1)
    assert rig.left() == {old, newest}


def test_kill_within_an_eviction_leaves_no_fault(ring: Rig) -> None:
    old, _ = ring.add("20261121"), ring.add("20261122")
    (stored,) = ring.store.listed(old)
    ring.copies.add(stored, NOW_S)
    ring.copies.move(old, [named("20261121")], EVICTED, NOW_S)
    (ring.root / stored.path).unlink()
    assert ring.store.verify_segment(stored) is None and ring.store.audit(old) == []
    assert old not in ring.left()
