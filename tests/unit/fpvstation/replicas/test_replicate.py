"""Replication to the office: selection, times, records, and restores."""

import errno
import os
from pathlib import Path

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.office import PLACE
from testkit.base_station.stored import CAR, DATA, NAME, SECOND, SESSION, act, put

from fpvcar.http.languages import translated
from fpvcar.runtime.texts import VERBATIM, fault_text
from fpvstation.replicas.pending import LATEST_S, SETTLED_S
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress, OnProgress, PlaceFault
from fpvstation.replicas.remotes import BACK_OFF_S, POLL_S, Remotes
from fpvstation.replicas.replicate import Replicator
from fpvstation.store.identity import StoreGone
from fpvstation.store.replica_log import HERE, segments_of
from fpvstation.store.sums_file import StoredSegment

LATER = NAME.replace("20261121", "20261122")


async def test_finished_session_is_sent_once(rig: Station) -> None:
    put(rig.store)
    await rig.replicator.once(False)
    assert rig.office.sent == []
    rig.now_s += SETTLED_S
    await rig.replicator.once(False)
    await rig.later()
    assert rig.office.sent == [(SESSION, False)], "once, and never again"
    where = rig.copies.states(SESSION, rig.store.listed(SESSION))
    assert [(one.place, one.verified_s, one.whole) for one in where] == [
        (HERE, rig.utc_s, True),
        (PLACE, rig.utc_s, True),
    ]
    assert (rig.replicator.state.sent, rig.replicator.state.waiting) == (1, 0)


async def test_office_is_known_after_its_first_verification(rig: Station) -> None:
    for name in (NAME, SECOND):
        put(rig.store, name)
        await rig.later()
    assert rig.office.known == [False, True]


async def test_endless_session_is_sent_after_the_time_limit(rig: Station) -> None:
    began_s = rig.now_s
    for number in range(1, 30):
        put(rig.store, NAME.replace("0001", f"{number:04d}"), b"a minute")
        await rig.replicator.once(False)
        if rig.office.sent:
            break
        rig.now_s += SETTLED_S - 1.0
    assert rig.now_s - began_s >= LATEST_S and rig.office.sent


async def test_full_round_finds_a_missed_session(rig: Station) -> None:
    put(rig.store, LATER)
    fresh = Replicator(rig.office, rig.store, rig.copies, act)
    await fresh.once(False)
    assert rig.office.sent == []
    await fresh.once(True)
    assert len(rig.office.sent) == 1


async def test_copy_damaged_at_the_office_is_sent_again(rig: Station) -> None:
    put(rig.store)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent"
    await rig.later()
    assert rig.office.sent == [(SESSION, False), (SESSION, True)]
    assert rig.office.there[f"{SESSION}/{NAME}"] == DATA


async def test_unverified_copy_is_not_recorded(rig: Station) -> None:
    put(rig.store)
    rig.office.check = never_good  # type: ignore[method-assign]
    await rig.later()
    assert "are bad or missing there" in str(rig.replicator.state.bad[SESSION])
    assert PLACE not in rig.copies.of(SESSION) and rig.replicator.state.waiting == 1


async def never_good(session: str, listed: list[StoredSegment]) -> list[str]:
    return [NAME]


async def test_local_damage_spares_the_copy_and_is_repaired_from_it(rig: Station) -> None:
    put(rig.store)
    await rig.later()
    rig.bend()
    assert rig.store.verify_segment(rig.store.listed(SESSION)[0])
    assert rig.store.listed(SESSION) == []
    await rig.later()
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert len(list(rig.store.segments())) == 1


async def test_file_damaged_before_sending_is_not_sent(rig: Station) -> None:
    put(rig.store)
    rig.bend()
    put(rig.store, SECOND, b"second")
    await rig.later()
    assert list(rig.office.there) == [f"{SESSION}/{SECOND}"]
    assert len(list(rig.root.glob(f".bad/{SESSION}/*"))) == 1


async def test_file_lost_at_the_office_too_is_requested_once(rig: Station) -> None:
    put(rig.store)
    await rig.later()
    rig.bend()
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there, too"
    rig.store.verify_segment(rig.store.listed(SESSION)[0])
    await rig.later()
    assert rig.copies.of(SESSION)[PLACE].segments == {}
    rig.office.faults = [PlaceFault("asked again")]
    await rig.later()
    assert rig.office.faults and not rig.replicator.state.bad


async def test_removed_session_does_not_come_back(rig: Station) -> None:
    put(rig.store)
    await rig.later()
    rig.store.remove(SESSION, ".trash/2026-11-23")
    rig.office.faults = [PlaceFault("it was asked")]
    await rig.later()
    assert rig.office.faults and list(rig.store.segments()) == []


async def test_failed_session_does_not_block_the_next(rig: Station) -> None:
    put(rig.store)
    put(rig.store, LATER)
    rig.office.faults = [PlaceFault("its disk is full")]
    await rig.later()
    assert rig.replicator.state.bad == {SESSION: VERBATIM(text="its disk is full")}
    assert rig.replicator.state.sent == 1 and rig.replicator.state.waiting == 1
    await rig.replicator.once(False)
    assert not rig.replicator.state.bad and rig.replicator.state.sent == 2


async def test_three_failures_in_a_row_are_a_fault_of_the_office(rig: Station) -> None:
    for day in range(21, 26):
        put(rig.store, NAME.replace("20261121", f"202611{day}"))
    rig.office.faults = [PlaceFault("away")] * 4
    with pytest.raises(PlaceFault, match="away"):
        await rig.later()
    assert len(rig.office.faults) == 1 and rig.replicator.state.waiting == 5


async def test_unmounted_store_gets_no_record(rig: Station) -> None:
    put(rig.store)
    away = rig.root.with_name("away")

    async def check(session: str, listed: list[StoredSegment]) -> list[str]:
        rig.root.rename(away)
        rig.root.mkdir()
        return []

    rig.office.check = check  # type: ignore[method-assign]
    await rig.later()
    assert "mount its disk" in str(rig.replicator.state.bad[SESSION])
    assert list(rig.root.iterdir()) == []


class Enough(BaseException):
    """Exception that ends a test early."""


async def test_absent_office_is_retried_with_growing_pauses(rig: Station) -> None:
    put(rig.store)
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if seconds == POLL_S:
            raise Enough

    offices = Remotes([rig.office], 2, rig.copies, sleep)
    offices.open(rig.store, act)
    rig.office.faults = [
        PlaceFault("away"),
        OSError(errno.EIO, "disk"),
        StoreGone("no store"),
        *[ZeroDivisionError("oh")] * 4,
    ]
    with pytest.raises(Enough):
        await offices.run()
    assert slept == [*BACK_OFF_S, BACK_OFF_S[-1], BACK_OFF_S[-1], POLL_S]
    assert offices.states[0].state == "ok" and offices.states[0].sent == 1
    assert segments_of(rig.store.segments()).keys() == {NAME} and CAR in SESSION


async def test_waiting_sessions_and_their_age_are_known(rig: Station) -> None:
    put(rig.store)
    put(rig.store, LATER)
    offices = Remotes([rig.office], 1, rig.copies, clock_s=rig.steady_s)
    assert offices.alone() == (0, 0.0), "before it looked"
    offices.open(rig.store, act)
    (replicator,) = offices._replicators
    rig.office.faults = [PlaceFault("its disk is full")] * 2
    await replicator.once(True)
    assert replicator.state.waiting == 2 and replicator.state.waiting_bytes == 2 * len(DATA)
    came_s = (rig.root / SESSION / "SHA256SUMS").stat().st_mtime
    assert offices.alone() == (2, came_s)
    rig.now_s += SETTLED_S
    await replicator.once(False)
    assert (replicator.state.waiting, replicator.state.waiting_bytes) == (0, 0)
    assert offices.alone() == (0, 0.0)


async def test_progress_of_a_session_is_known_while_it_is_sent(rig: Station) -> None:
    put(rig.store)
    seen = list[tuple[int, int, float]]()
    state, size = rig.replicator.state, len(DATA)

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
    rig: Station, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlaceFault, match="rdcp is not installed; sudo apt install rdpipe"):
        await Rdcp("nas:/srv", tmp_path).fetch(SESSION)


async def test_fault_of_rdcp_has_a_key_and_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "rdcp"
    program.write_text("#!/bin/sh\necho 'nas: no route' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PlaceFault) as fault:
        await Rdcp("nas:/srv", tmp_path).fetch(SESSION)
    german = "nas:/srv: rdcp endete mit Status 3: nas: no route"
    assert translated("de", fault_text(fault.value)) == german
