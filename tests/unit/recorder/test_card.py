"""Recorder with a queue that never blocks, and a card with any fault."""

import errno
import threading
from collections.abc import Sequence

import pytest
from testkit.pins.wheels import until
from testkit.recorder.recorder import Rig
from testkit.recorder.recording import step

from fpvcar.recorder import encoder
from fpvcar.recorder.handover import ALL_MOST
from fpvcar.recorder.thread import ENDED
from fpvcar.recordings import messages
from fpvcar.recordings.mcap.parsing import RecordError
from fpvcar.runtime.units import SECOND_NS

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_stalled_card_drops_pictures_up_to_the_next_key_frame(rig: Rig) -> None:
    for _ in range(75):
        rig.picture(100_000)
        rig.recorder.put(messages.STEP, step(rig.now_ns))
        rig.wait(0.03)
    assert rig.recorder.dropped == 75 - 59
    rig.thread.turn()
    for _ in range(25):
        rig.picture(100_000)
        rig.wait(0.03)
    rig.thread.turn()
    shots = [one for one in rig.messages() if one.topic == messages.CAMERA]
    sequences = [one.sequence for one in shots]
    assert sequences == [*range(59), *range(80, 100)], "on from a key frame"
    steps = [one for one in rig.messages() if one.topic == messages.STEP]
    assert len(steps) == 75, "the rest was taken"
    rig.recorder.second()
    rig.thread.turn()
    assert rig.events() == ["21 messages were not recorded"]


def test_hung_card_drops_messages_with_bounded_memory(rig: Rig) -> None:
    one, most = step(), ALL_MOST // encoder.SIZE
    for _ in range(most + 200):
        rig.recorder.put(messages.STEP, one)
    assert rig.handover.waiting_bytes <= ALL_MOST
    assert rig.recorder.dropped == 200


def test_stall_is_reported_while_it_lasts(rig: Rig) -> None:
    states: list[str] = []

    def slow(file: int) -> None:
        for _ in range(2):
            rig.wait(1.5)
            states.append(str(rig.recorder.status().state))

    rig.disk.sync = slow  # type: ignore[method-assign]
    rig.picture()
    rig.thread.turn()
    assert states == ["ok", "the card has not answered for 3 s"]
    assert rig.recorder.status().state == "ok"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (FULL, "No space left on device"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file"),
        (OSError("strange"), "strange"),
        (RuntimeError("a bug"), "RuntimeError('a bug')"),
    ],
)
def test_card_fault_is_reported_in_words_and_retried(
    fault: Exception, words: str, caplog: pytest.LogCaptureFixture, rig: Rig
) -> None:
    rig.drive(2)
    rig.disk.fault = fault  # type: ignore[assignment]
    rig.drive(1)
    assert words in str(rig.recorder.status().state) and rig.recorder.dropped == 20
    before = len(rig.disk.did)
    rig.drive(1)
    assert len(rig.disk.did) == before, "left alone for a while"
    rig.drive(2)
    assert len(rig.disk.did) > before, "and tried again"
    assert caplog.text.count("not recording") == 1, "said once"
    rig.disk.fault = None
    rig.drive(5)
    told = rig.recorder.status()
    assert told.state == "ok" and told.dropped > 0
    rig.recorder.second()
    rig.thread.turn()
    back, lost = rig.events()
    assert back.startswith("recording resumed after: ") and words in back
    assert lost == f"{told.dropped} messages were not recorded"
    assert rig.salvaged == ["Plague-20261121T193100Z-0001.mcap.part"]


LEFT = "Plague-20261120T193100Z-0001.mcap.part"


def test_salvage_of_an_old_file_does_not_delay_recording(rig: Rig) -> None:
    rig.disk.files[LEFT] = bytearray(b"x")
    rig.salvage_steps = 100
    synced: list[float] = []
    sync = rig.disk.sync

    def timed(file: int) -> None:
        sync(file)
        synced.append(rig.now_ns / SECOND_NS)

    rig.disk.sync = timed  # type: ignore[method-assign]
    while not rig.salvaged:
        due_ns = rig.now_ns + 800_000_000
        rig.picture()
        rig.thread.turn()
        rig.wait(max(0.0, (due_ns - rig.now_ns) / SECOND_NS))
        assert rig.recorder.status().state == "ok"
    gaps = [after - before for before, after in zip(synced, synced[1:], strict=False)]
    assert len(gaps) > 20 and max(gaps) < 0.85
    assert rig.salvaged == [LEFT]


@pytest.mark.parametrize(
    "fault", [OSError("no"), RecordError("it held before"), MemoryError(), KeyError()]
)
def test_failed_salvage_does_not_disturb_recording(fault: Exception, rig: Rig) -> None:
    rig.salvage_fault = fault
    rig.disk.files[LEFT] = bytearray(b"x")
    rig.drive(3)
    rig.disk.fault = FULL
    rig.drive(1)
    rig.disk.fault = None
    rig.salvage_fault = None
    rig.drive(5)
    assert rig.recorder.status().state == "ok"
    assert [name for name in rig.disk.names if name != LEFT] == [
        "Plague-20261121T193100Z-0001.mcap.part",
        "Plague-20261121T193100Z-0002.mcap.part",
    ]
    assert rig.salvaged == [rig.disk.names[1]], "each once in a run"


@pytest.mark.parametrize(("faults", "sealed"), [(1, True), (3, True), (4, False)])
def test_interrupted_salvage_resumes_after_up_to_three_faults(
    faults: int, sealed: bool, rig: Rig
) -> None:
    """The folder was released in between; the fault of the card may be this file."""
    rig.salvage_steps = 10_000
    rig.disk.files[LEFT] = bytearray(b"x")
    for _ in range(faults):
        rig.drive(5)
        rig.disk.fault = FULL
        rig.drive(1)
        rig.disk.fault = None
    assert not rig.salvaged
    rig.salvage_steps = 10
    rig.drive(40)
    assert (LEFT in rig.salvaged) == sealed
    assert "Plague-20261121T193100Z-0001.mcap.part" in rig.salvaged


def test_fault_at_a_switch_loses_no_recording(rig: Rig) -> None:
    rig.drive(2)
    rig.disk.fault = FULL
    rig.recorder.switch(False)
    rig.recorder.switch(True)
    rig.drive(1)
    rig.disk.fault = None
    rig.drive(5)
    assert "Plague-20261121T193102Z-0001.mcap.part" in rig.disk.names


def test_thread_writes_and_seals(tmp_path: object) -> None:
    rig = Rig(sync_s=0.1)
    rig.recorder.start()
    rig.drive(2, turns=False)
    until(lambda: len(rig.messages()) >= 40)
    rig.recorder.stop()
    assert rig.disk.names == ["Plague-20261121T193100Z-0001.mcap"]
    assert not [one for one in threading.enumerate() if one.name == "recorder"]


class Strange(BaseException):
    """Exception of an unexpected type."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_dead_thread_is_reported_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(sync_s=0.1)
    append = rig.disk.append

    def ends(file: int, parts: Sequence[bytes]) -> None:
        whole = len(parts) == 1  # the head of the file
        append(file, parts if whole else [b"".join(parts)[:7000]])
        if not whole:
            rig.disk.append = append  # type: ignore[method-assign]
            raise Strange

    rig.disk.append = ends  # type: ignore[method-assign]
    rig.recorder.start()
    rig.drive(1, turns=False)
    rig.recorder.keep()
    until(lambda: rig.recorder.status().state == ENDED)
    assert rig.recorder.status().on, "so it is told as a fault"
    begun = rig.recorder.begun
    rig.recorder.second()
    assert str(ENDED) in caplog.text and rig.recorder.begun == begun + 1
    rig.drive(2, turns=False)
    until(lambda: rig.recorder.status().state == "ok")
    rig.recorder.second()
    rig.recorder.stop()
    assert rig.events()[0] == f"recording resumed after: {ENDED}"
    assert rig.recorder.status().state == "ok" and not rig.handover.waiting_bytes
    for name in (one for one in rig.disk.names if one.endswith(".mcap")):
        made = rig.disk.recording(name)
        assert made.whole, "no half chunk is left"


def test_stop_without_start_is_fine() -> None:
    Rig().recorder.stop()
