"""Replication to the office: selection, times, records, and restores."""

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fpvstation.mirror.mirror import Rdcp
from fpvstation.mirror.mirrors import BACK_OFF_S, POLL_S, Offices
from fpvstation.mirror.relay_queue import LATEST_S, SETTLED_S
from fpvstation.mirror.replicate import CopyProgress, OfficeFault, OnProgress, Replicator
from fpvstation.store.disk import Folder
from fpvstation.store.identity import StoreGone
from fpvstation.store.replica_log import (
    AHEAD_S,
    HERE,
    RECENT_S,
    REJUDGED_S,
    ReplicaLog,
    segments_of,
)
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment
from tests.unit.fpvstation.store.test_store import CAR, DATA, NAME, SESSION, put, sums_of

PLACE = "office:/store"
SECOND = NAME.replace("0001", "0002")
LATER = NAME.replace("20261121", "20261122")


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
        self.store = Store(disk, lambda session: self.relay.queue(session))
        self.store.open("")
        self.relay = Replicator(
            self.office, self.store, self.copies, act, self._clock_s, lambda: self.utc_s
        )

    def _clock_s(self) -> float:
        return self.now_s

    async def later(self) -> None:
        """Run a round when all is due."""
        self.now_s += LATEST_S
        await self.relay.once(True)

    def bend(self, name: str = NAME) -> None:
        """Damage a byte on the local disk."""
        (self.root / SESSION / name).write_bytes(b"?" + DATA[1:])


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_finished_session_is_sent_once(rig: Rig) -> None:
    put(rig.store)
    await rig.relay.once(False)
    assert rig.office.sent == []
    rig.now_s += SETTLED_S
    await rig.relay.once(False)
    await rig.later()
    assert rig.office.sent == [(SESSION, False)], "once, and never again"
    where = rig.copies.states(SESSION, rig.store.listed(SESSION))
    assert [(one.place, one.verified_s, one.whole) for one in where] == [
        (HERE, 5.0, True),
        (PLACE, 5.0, True),
    ]
    assert (rig.relay.state.sent, rig.relay.state.waiting) == (1, 0)


async def test_office_is_known_after_its_first_verification(rig: Rig) -> None:
    for name in (NAME, SECOND):
        put(rig.store, name)
        await rig.later()
    assert rig.office.known == [False, True]


async def test_endless_session_is_sent_after_the_time_limit(rig: Rig) -> None:
    began_s = rig.now_s
    for number in range(1, 30):
        put(rig.store, NAME.replace("0001", f"{number:04d}"), b"a minute")
        await rig.relay.once(False)
        if rig.office.sent:
            break
        rig.now_s += SETTLED_S - 1.0
    assert rig.now_s - began_s >= LATEST_S and rig.office.sent


async def test_full_round_finds_a_missed_session(rig: Rig) -> None:
    put(rig.store, LATER)
    fresh = Replicator(rig.office, rig.store, rig.copies, act)
    await fresh.once(False)
    assert rig.office.sent == []
    await fresh.once(True)
    assert len(rig.office.sent) == 1


async def test_copy_damaged_at_the_office_is_sent_again(rig: Rig) -> None:
    put(rig.store)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent"
    await rig.later()
    assert rig.office.sent == [(SESSION, False), (SESSION, True)]
    assert rig.office.there[f"{SESSION}/{NAME}"] == DATA


async def test_unverified_copy_is_not_recorded(rig: Rig) -> None:
    put(rig.store)
    rig.office.check = never_good  # type: ignore[method-assign]
    await rig.later()
    assert "differ from the sent ones" in rig.relay.state.bad[SESSION]
    assert PLACE not in rig.copies.of(SESSION) and rig.relay.state.waiting == 1


async def never_good(session: str, listed: list[StoredSegment]) -> list[str]:
    return [NAME]


async def test_local_damage_spares_the_copy_and_is_repaired_from_it(rig: Rig) -> None:
    put(rig.store)
    await rig.later()
    rig.bend()
    assert rig.store.verify_segment(rig.store.listed(SESSION)[0])
    assert rig.store.listed(SESSION) == []
    await rig.later()
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert len(list(rig.store.segments())) == 1


async def test_file_damaged_before_sending_is_not_sent(rig: Rig) -> None:
    put(rig.store)
    rig.bend()
    put(rig.store, SECOND, b"second")
    await rig.later()
    assert list(rig.office.there) == [f"{SESSION}/{SECOND}"]
    assert len(list(rig.root.glob(f".bad/{SESSION}/*"))) == 1


async def test_file_lost_at_the_office_too_is_requested_once(rig: Rig) -> None:
    put(rig.store)
    await rig.later()
    rig.bend()
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there, too"
    rig.store.verify_segment(rig.store.listed(SESSION)[0])
    await rig.later()
    assert rig.copies.of(SESSION)[PLACE].segments == {}
    rig.office.faults = [OfficeFault("asked again")]
    await rig.later()
    assert rig.office.faults and not rig.relay.state.bad


async def test_removed_session_does_not_come_back(rig: Rig) -> None:
    put(rig.store)
    await rig.later()
    rig.store.remove(SESSION, ".trash/2026-11-23")
    rig.office.faults = [OfficeFault("it was asked")]
    await rig.later()
    assert rig.office.faults and list(rig.store.segments()) == []


async def test_failed_session_does_not_block_the_next(rig: Rig) -> None:
    put(rig.store)
    put(rig.store, LATER)
    rig.office.faults = [OfficeFault("its disk is full")]
    await rig.later()
    assert rig.relay.state.bad == {SESSION: "its disk is full"}
    assert rig.relay.state.sent == 1 and rig.relay.state.waiting == 1
    await rig.relay.once(False)
    assert not rig.relay.state.bad and rig.relay.state.sent == 2


async def test_three_failures_in_a_row_are_a_fault_of_the_office(rig: Rig) -> None:
    for day in range(21, 26):
        put(rig.store, NAME.replace("20261121", f"202611{day}"))
    rig.office.faults = [OfficeFault("away")] * 4
    with pytest.raises(OfficeFault, match="away"):
        await rig.later()
    assert len(rig.office.faults) == 1 and rig.relay.state.waiting == 5


async def test_unmounted_store_gets_no_record(rig: Rig) -> None:
    put(rig.store)
    away = rig.root.with_name("away")

    async def check(session: str, listed: list[StoredSegment]) -> list[str]:
        rig.root.rename(away)
        rig.root.mkdir()
        return []

    rig.office.check = check  # type: ignore[method-assign]
    await rig.later()
    assert "mount its disk" in rig.relay.state.bad[SESSION]
    assert list(rig.root.iterdir()) == []


async def test_segment_is_safe_once_enough_places_have_it(rig: Rig) -> None:
    put(rig.store)
    (stored,) = rig.store.segments()
    alone, two, three = (
        Offices([rig.office], most, rig.copies, utc_s=lambda: 5.0) for most in (1, 2, 3)
    )
    assert alone.safe(stored) and not two.safe(stored)
    await rig.later()
    assert two.safe(stored)
    assert not two.safe(StoredSegment(stored.path, "0" * 64)), "another one of that name"
    assert not three.safe(stored)


async def test_old_copy_at_the_office_is_judged_again(rig: Rig) -> None:
    put(rig.store)
    put(rig.store, LATER)
    await rig.later()
    rig.utc_s += REJUDGED_S
    await rig.later()
    assert rig.relay.state.rejudged == 0 and rig.relay.state.oldest_s == 5.0
    rig.utc_s += 1.0
    sent = len(rig.office.sent)
    for done in (1, 2, 2):
        await rig.later()
        assert rig.relay.state.rejudged == done, "one a round"
    assert len(rig.office.sent) == sent, "nothing is moved"
    assert rig.relay.state.oldest_s == rig.utc_s and not rig.relay.state.rotted


async def test_office_reads_old_copies_a_fifth_of_the_time(rig: Rig) -> None:
    for day in (21, 22, 23):
        put(rig.store, NAME.replace("20261121", f"202611{day}"))
    await rig.later()
    rig.utc_s += 2 * REJUDGED_S
    check = rig.office.check

    async def slow(session: str, listed: list[StoredSegment]) -> list[str]:
        rig.now_s += 100.0
        return await check(session, listed)

    rig.office.check = slow  # type: ignore[method-assign]
    began_s = rig.now_s
    while rig.relay.state.rejudged < 3:
        await rig.relay.once(True)
        rig.now_s += 10.0
    assert 1100.0 <= rig.now_s - began_s <= 1200.0


async def test_copy_that_rotted_at_the_office_is_sent_again(rig: Rig) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")
    (stored, _) = rig.store.segments()
    await rig.later()
    two = Offices([rig.office], 2, rig.copies, utc_s=lambda: rig.utc_s)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there"
    assert two.safe(stored), "not known yet"
    rig.utc_s += REJUDGED_S + 1.0
    with pytest.raises(OfficeFault, match="1 files of .* are bad or missing there"):
        await rig.later()
    assert not two.safe(stored) and rig.relay.state.rotted == 1
    await rig.later()
    assert rig.office.there[f"{SESSION}/{NAME}"] == DATA and two.safe(stored)


async def test_copy_that_was_judged_too_long_ago_counts_for_no_receipt(rig: Rig) -> None:
    put(rig.store)
    (stored,) = rig.store.segments()
    await rig.later()
    judged_s = rig.utc_s
    two = Offices([rig.office], 2, rig.copies, utc_s=lambda: rig.utc_s)
    for utc_s, counts in (
        (judged_s + RECENT_S, True),
        (judged_s + RECENT_S + 1.0, False),
        (judged_s - AHEAD_S, True),
        (judged_s - AHEAD_S - 1.0, False),
    ):
        rig.utc_s = utc_s
        assert two.safe(stored) == counts, utc_s


async def test_evicted_session_is_judged_there_and_comes_back_if_it_rots(rig: Rig) -> None:
    """The session is fetched again, from the car or from another office."""
    put(rig.store)
    await rig.later()
    sums = sums_of(DATA)
    assert rig.store.evict(SESSION, lambda gone: True)
    await rig.later()
    assert not list(rig.store.segments()), "the office does not bring it back"
    rig.relay.verify_soon([SESSION])
    await rig.later()
    assert rig.relay.state.rejudged == 1
    assert rig.store.evicted(CAR, NAME, sums.sha256)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there"
    rig.relay.verify_soon([SESSION])
    with pytest.raises(OfficeFault):
        await rig.later()
    assert not rig.store.evicted(CAR, NAME, sums.sha256)
    (finding,) = rig.store.audit(SESSION)
    assert finding.fault == "file and line are missing", "verify names it"


class Enough(BaseException):
    """Exception that ends a test early."""


async def test_absent_office_is_retried_with_growing_pauses(rig: Rig) -> None:
    put(rig.store)
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if seconds == POLL_S:
            raise Enough

    offices = Offices([rig.office], 2, rig.copies, sleep)
    offices.open(rig.store, act)
    rig.office.faults = [
        OfficeFault("away"),
        OSError(errno.EIO, "disk"),
        StoreGone("no store"),
        *[ZeroDivisionError("oh")] * 4,
    ]
    with pytest.raises(Enough):
        await offices.run()
    assert slept == [*BACK_OFF_S, BACK_OFF_S[-1], BACK_OFF_S[-1], POLL_S]
    assert offices.states[0].state == "ok" and offices.states[0].sent == 1
    assert segments_of(rig.store.segments()).keys() == {NAME} and CAR in SESSION


async def test_waiting_sessions_and_their_age_are_known(rig: Rig) -> None:
    put(rig.store)
    put(rig.store, LATER)
    offices = Offices([rig.office], 1, rig.copies, clock_s=rig._clock_s)
    assert offices.alone() == (0, 0.0), "before it looked"
    offices.open(rig.store, act)
    (relay,) = offices._replicators
    rig.office.faults = [OfficeFault("its disk is full")] * 2
    await relay.once(True)
    assert relay.state.waiting == 2 and relay.state.waiting_bytes == 2 * len(DATA)
    came_s = (rig.root / SESSION / "SHA256SUMS").stat().st_mtime
    assert offices.alone() == (2, came_s)
    rig.now_s += SETTLED_S
    await relay.once(False)
    assert (relay.state.waiting, relay.state.waiting_bytes) == (0, 0)
    assert offices.alone() == (0, 0.0)


async def test_progress_of_a_session_is_known_while_it_is_sent(rig: Rig) -> None:
    put(rig.store)
    seen = list[tuple[int, int, float]]()
    state, size = rig.relay.state, len(DATA)

    async def send(
        session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress
    ) -> None:
        for moved in (0, size // 2, size):
            on_progress(CopyProgress(moved, moved, size))
            seen.append((state.bytes, state.waiting_bytes, state.rate))
            rig.now_s += 1.0

    rig.office.send = send  # type: ignore[method-assign]
    rig.office.check = never_bad  # type: ignore[method-assign]
    await rig.later()
    half = size // 2
    assert seen == [(0, size, 0.0), (half, size - half, half), (size, 0, size / 2)]
    assert (state.waiting, state.waiting_bytes, state.rate) == (0, 0, 0.0)


async def never_bad(session: str, listed: list[StoredSegment]) -> list[str]:
    return []


async def test_missing_rdcp_is_named(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OfficeFault, match="rdcp is missing: install rdpipe"):
        await Rdcp("nas:/srv", tmp_path).fetch(SESSION)
