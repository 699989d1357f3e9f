"""Replicas at the office are verified again, a fifth of the time at most."""

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.stored import CAR, DATA, NAME, SECOND, SESSION, put, sums_of

from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.remotes import Remotes
from fpvstation.store.replica_log import AHEAD_S, RECENT_S, REJUDGED_S
from fpvstation.store.sums_file import StoredSegment
from tests.unit.fpvstation.replicas.test_replicate import LATER


async def test_segment_is_safe_once_enough_places_have_it(rig: Station) -> None:
    put(rig.store)
    (stored,) = rig.store.segments()
    alone, two, three = (
        Remotes([rig.office], most, rig.copies, utc_s=rig.clock_s) for most in (1, 2, 3)
    )
    assert alone.safe(stored) and not two.safe(stored)
    await rig.later()
    assert two.safe(stored)
    assert not two.safe(StoredSegment(stored.path, "0" * 64)), "another one of that name"
    assert not three.safe(stored)


async def test_old_copy_at_the_office_is_judged_again(rig: Station) -> None:
    put(rig.store)
    put(rig.store, LATER)
    await rig.later()
    sent_s = rig.utc_s
    rig.utc_s += REJUDGED_S
    await rig.later()
    assert rig.replicator.state.rejudged == 0 and rig.replicator.state.oldest_s == sent_s
    rig.utc_s += 1.0
    sent = len(rig.office.sent)
    for done in (1, 2, 2):
        await rig.later()
        assert rig.replicator.state.rejudged == done, "one a round"
    assert len(rig.office.sent) == sent, "nothing is moved"
    assert rig.replicator.state.oldest_s == rig.utc_s and not rig.replicator.state.rotted


async def test_office_reads_old_copies_a_fifth_of_the_time(rig: Station) -> None:
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
    while rig.replicator.state.rejudged < 3:
        await rig.replicator.once(True)
        rig.now_s += 10.0
    assert 1100.0 <= rig.now_s - began_s <= 1200.0


async def test_copy_that_rotted_at_the_office_is_sent_again(rig: Station) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")
    (stored, _) = rig.store.segments()
    await rig.later()
    two = Remotes([rig.office], 2, rig.copies, utc_s=rig.clock_s)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there"
    assert two.safe(stored), "not known yet"
    rig.utc_s += REJUDGED_S + 1.0
    with pytest.raises(PlaceFault, match="1 files of .* are bad or missing there"):
        await rig.later()
    assert not two.safe(stored) and rig.replicator.state.rotted == 1
    await rig.later()
    assert rig.office.there[f"{SESSION}/{NAME}"] == DATA and two.safe(stored)


async def test_copy_that_was_judged_too_long_ago_counts_for_no_receipt(rig: Station) -> None:
    put(rig.store)
    (stored,) = rig.store.segments()
    await rig.later()
    judged_s = rig.utc_s
    two = Remotes([rig.office], 2, rig.copies, utc_s=rig.clock_s)
    for utc_s, counts in (
        (judged_s + RECENT_S, True),
        (judged_s + RECENT_S + 1.0, False),
        (judged_s - AHEAD_S, True),
        (judged_s - AHEAD_S - 1.0, False),
    ):
        rig.utc_s = utc_s
        assert two.safe(stored) == counts, utc_s


async def test_evicted_session_is_judged_there_and_comes_back_if_it_rots(rig: Station) -> None:
    """The session is fetched again, from the car or from another office."""
    put(rig.store)
    await rig.later()
    sums = sums_of(DATA)
    assert rig.store.evict(SESSION, lambda gone: True)
    await rig.later()
    assert not list(rig.store.segments()), "the office does not bring it back"
    rig.replicator.verify_soon([SESSION])
    await rig.later()
    assert rig.replicator.state.rejudged == 1
    assert rig.store.evicted(CAR, NAME, sums.sha256)
    rig.office.there[f"{SESSION}/{NAME}"] = b"bent there"
    rig.replicator.verify_soon([SESSION])
    with pytest.raises(PlaceFault):
        await rig.later()
    assert not rig.store.evicted(CAR, NAME, sums.sha256)
    (finding,) = rig.store.audit(SESSION)
    assert finding.fault == "file and line are missing", "verify names it"
