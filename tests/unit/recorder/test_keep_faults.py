"""Last minute, with a card fault or a clock change while it is kept."""

import errno
from collections.abc import Sequence

import pytest
from testkit.recorder.recorder import Rig

from fpvcar.recordings import messages
from fpvcar.runtime.units import SECOND_NS

FIRST = "Plague-20261121T193100Z-0001.mcap"
SECOND = "Plague-20261121T193100Z-0002.mcap"
FAULT = OSError(errno.EIO, "Input/output error")


def kept(rig: Rig) -> list[str]:
    """Return the names of the files that stay."""
    return [one.removesuffix(".keep") for one in rig.disk.names if ".keep" in one]


def steps(rig: Rig, names: Sequence[str]) -> int:
    """Count the steps in these files, under any name they have by now."""
    found = [one for one in rig.disk.names if one.removesuffix(".part") in names]
    return sum(rig.disk.recording(one).counts[messages.STEP] for one in found)


def test_keep_during_a_card_fault_is_done_later() -> None:
    for on in (False, True):
        rig = Rig(on=on, segment_s=15.0)
        rig.drive(20)
        rig.disk.fault = FAULT
        rig.recorder.keep()
        rig.drive(5)
        assert rig.recorder.status().kept == 0 and kept(rig) == []
        rig.disk.fault = None
        rig.drive(100)
        assert rig.recorder.status().kept == 1
        assert kept(rig) == [FIRST, SECOND]
        assert steps(rig, kept(rig)) == 200
        assert rig.recorder.status().state == "ok"


def test_minute_before_a_fault_can_be_kept_after_it() -> None:
    """The file that the fault had interrupted is kept, too."""
    rig = Rig(segment_s=15.0)
    rig.drive(20)
    rig.disk.fault = FAULT
    rig.drive(1)
    rig.disk.fault = None
    rig.disk.did.clear()
    rig.recorder.keep()
    rig.thread.turn()
    assert kept(rig) == [FIRST, SECOND] and rig.recorder.status().kept == 1
    assert rig.disk.did[:2] == ["enter", f"touch {FIRST}.keep"], "it had let go of it"


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("good", range(6))
def test_keep_succeeds_after_a_fault_at_any_step(on: bool, good: int) -> None:
    rig = Rig(on=on, segment_s=15.0)
    rig.drive(20)
    attempt, left = rig.disk._try, good

    def fails(what: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            rig.disk._try = attempt  # type: ignore[method-assign]
            raise FAULT
        attempt(what)

    rig.disk._try = fails  # type: ignore[method-assign]
    rig.recorder.keep()
    rig.drive(10)
    assert kept(rig)[:2] == [FIRST, SECOND] and rig.recorder.status().kept == 1
    assert left < 0 and steps(rig, [FIRST, SECOND]) >= 200
    assert SECOND in rig.disk.names or rig.salvaged == [SECOND + ".part"]


def test_keep_that_always_fails_does_not_stop_recording() -> None:
    rig = Rig(segment_s=15.0)
    rig.drive(5)

    def full(name: str) -> None:
        raise OSError(errno.ENOSPC, f"no room for {name}")

    rig.disk.touch = full  # type: ignore[method-assign]
    rig.recorder.keep()
    rig.drive(1)
    assert "no room for" in str(rig.recorder.status().state)
    rig.drive(30)
    assert rig.recorder.status().state == "ok" and rig.recorder.status().kept == 0
    dropped = rig.recorder.dropped
    rig.drive(10)
    assert rig.recorder.dropped == dropped


def test_switch_at_a_fault_leaves_no_half_chunk() -> None:
    rig = Rig()
    rig.drive(2)
    append = rig.disk.append

    def half(file: int, parts: Sequence[bytes]) -> None:
        rig.disk.append = append  # type: ignore[method-assign]
        append(file, [b"".join(parts)[:100]])
        raise FAULT

    rig.disk.append = half  # type: ignore[method-assign]
    rig.picture()
    rig.recorder.switch(False)
    rig.thread.turn()
    assert rig.disk.names == [FIRST + ".part"]
    made = rig.disk.recording(FIRST + ".part")
    assert made.counts[messages.STEP] == 20 and not made.damage
    rig.drive(4)
    assert "Plague-20261121T193102Z-0001.mcap.roll" in rig.disk.names


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_clock_change_does_not_lose_the_minute(by_s: float) -> None:
    rig = Rig(on=False)
    rig.drive(20)
    rig.utc_ns += round(by_s * SECOND_NS)
    rig.recorder.second()
    rig.drive(18)
    rig.recorder.keep()
    rig.thread.turn()
    assert {FIRST, SECOND} < set(kept(rig)) and len(kept(rig)) == 4
    assert rig.recorder.status().kept == 1


def test_clock_change_after_keep_still_keeps_the_minute() -> None:
    rig = Rig(on=False)
    rig.drive(20)
    rig.recorder.keep()
    rig.utc_ns += 3600 * SECOND_NS
    rig.recorder.second()
    rig.thread.turn()
    assert kept(rig) == [FIRST, SECOND]


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_clock_change_keeps_no_more_than_the_minute(by_s: float) -> None:
    rig = Rig(on=False)
    rig.drive(20)
    rig.utc_ns += round(by_s * SECOND_NS)
    rig.recorder.second()
    rig.drive(95)
    assert not [one for one in rig.disk.names if one.startswith(FIRST[:23])]
    rig.recorder.keep()
    rig.thread.turn()
    assert 4 <= len(kept(rig)) <= 6


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_clock_change_during_a_card_fault_keeps_the_minute(by_s: float) -> None:
    rig = Rig(on=False)
    rig.drive(20)
    rig.disk.fault = FAULT
    rig.recorder.keep()
    rig.drive(1)
    rig.utc_ns += round(by_s * SECOND_NS)
    rig.recorder.second()
    rig.drive(1)
    rig.disk.fault = None
    rig.drive(40)
    assert kept(rig) == [FIRST, SECOND] and rig.recorder.status().kept == 1
