"""The recorder: a queue that never waits, and a card that does what it likes."""

import errno
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from fpvcar import config
from fpvcar.recording import figures, format, recorder, waiting
from fpvcar.recording.chunks import BytesSource
from fpvcar.recording.parsing import Damaged
from fpvcar.recording.reader import Message, Recording
from fpvcar.recording.recorder import Clock, Recorder
from fpvcar.recording.tape import Tape
from tests.recording_rig import (
    CATALOGUE,
    DELTA,
    KEY,
    SECOND_NS,
    UTC_NS,
    FakeDisk,
    about,
    step,
)

FULL = OSError(errno.ENOSPC, "No space left on device")


class Rig:
    """A recorder without a thread, on clocks that stand still."""

    def __init__(self, **settings: object) -> None:
        self.now_ns, self.utc_ns = 50 * SECOND_NS, UTC_NS
        self.disk = FakeDisk()
        chosen = config.Recording(**{"segment_s": 5.0, **settings})  # type: ignore
        self.salvaged: list[str] = []
        self.salvage_steps, self.salvage_s = 0, 0.05
        self.salvage_fault: Exception | None = None
        self.recorder = Recorder(
            chosen, about(0), CATALOGUE, Tape(self.disk, chosen, CATALOGUE),
            self._salvage,
            Clock(lambda: self.now_ns, lambda: self.utc_ns),
        )  # fmt: skip
        self.pictures = 0

    def _salvage(self, name: str) -> Iterator[None]:
        """On a card that needs its time."""
        for _ in range(self.salvage_steps):
            self.wait(self.salvage_s)
            yield
        if self.salvage_fault is not None:
            raise self.salvage_fault
        self.salvaged.append(name)

    def wait(self, seconds: float) -> None:
        """Both clocks go on."""
        self.now_ns += round(seconds * SECOND_NS)
        self.utc_ns += round(seconds * SECOND_NS)

    def picture(self, size: int = 100) -> None:
        """One of ten is key."""
        key = self.pictures % 10 == 0
        self.pictures += 1
        unit = (KEY if key else DELTA) + bytes(size)
        self.recorder.picture(key, self.now_ns - 5_000_000, unit)

    def drive(self, seconds: int, turns: bool = True) -> None:
        """Ten pictures and ten steps a second."""
        for _ in range(seconds * 10):
            self.picture()
            self.recorder.put(format.STEP, step(self.now_ns))
            self.wait(0.1)
            if turns and self.pictures % 10 == 0:
                self.recorder.turn()

    def messages(self) -> list[Message]:
        """Everything in all files."""
        return [
            one
            for name in self.disk.names
            if ".mcap" in name and self.disk.files[name]
            for one in Recording(BytesSource(bytes(self.disk.files[name]))).messages()
        ]

    def events(self) -> list[str]:
        """What the log says."""
        texts = []
        for one in self.messages():
            if one.topic == format.EVENT:
                event = format.decode(one.topic, one.data)
                assert isinstance(event, format.Event)
                texts.append(event.text)
        return texts


def test_what_is_put_stands_in_the_file_with_its_times() -> None:
    rig = Rig()
    rig.picture()
    rig.recorder.put(format.STEP, step(), rig.now_ns - 7)
    rig.wait(0.8)
    rig.recorder.turn()
    shot, one = (m for m in rig.messages() if m.topic != format.ABOUT)
    assert (shot.topic, one.topic) == (format.CAMERA, format.STEP)
    assert shot.log_ns == one.log_ns == UTC_NS
    assert shot.publish_ns == UTC_NS - 5_000_000 and one.publish_ns == UTC_NS - 7
    picture = format.decode(shot.topic, shot.data)
    assert isinstance(picture, format.Picture)
    assert picture.capture_ns == UTC_NS - 5_000_000
    assert picture.unit.startswith(KEY)


def test_a_recording_begins_with_a_key_frame() -> None:
    rig = Rig()
    rig.pictures = 3
    rig.drive(2)
    rig.recorder.turn()
    shots = [one for one in rig.messages() if one.topic == format.CAMERA]
    assert len(shots) == 13 and rig.recorder.dropped == 0
    picture = format.decode(shots[0].topic, shots[0].data)
    assert isinstance(picture, format.Picture) and picture.unit.startswith(KEY)


def test_told_says_how_it_is() -> None:
    rig = Rig()
    rig.drive(3)
    told = rig.recorder.told()
    assert told.on and told.state == "ok" and told.seconds == pytest.approx(3.0)
    assert told.free_mb is not None and 900 < told.free_mb < 1000
    assert told.dropped == told.kept == 0


def test_files_begin_with_key_frames_and_none_is_lost_between() -> None:
    rig = Rig()
    rig.drive(21)
    rig.recorder.turn()
    files = [name for name in rig.disk.names if name.endswith(".mcap")]
    assert len(files) == 4
    shots = [one for one in rig.messages() if one.topic == format.CAMERA]
    assert [one.sequence for one in shots] == list(range(210))
    for name in files:
        made = Recording(BytesSource(bytes(rig.disk.files[name])))
        first = next(made.messages([format.CAMERA]))
        picture = format.decode(first.topic, first.data)
        assert isinstance(picture, format.Picture) and picture.unit.startswith(KEY)


def test_a_stalled_card_costs_pictures_first_up_to_the_next_key() -> None:
    rig = Rig()
    for _ in range(75):
        rig.picture(100_000)
        rig.recorder.put(format.STEP, step(rig.now_ns))
        rig.wait(0.03)
    assert rig.recorder.dropped == 75 - 59
    rig.recorder.turn()
    for _ in range(25):
        rig.picture(100_000)
        rig.wait(0.03)
    rig.recorder.turn()
    shots = [one for one in rig.messages() if one.topic == format.CAMERA]
    sequences = [one.sequence for one in shots]
    assert sequences == [*range(59), *range(80, 100)], "on from a key frame"
    steps = [one for one in rig.messages() if one.topic == format.STEP]
    assert len(steps) == 75, "the rest was taken"
    rig.recorder.second()
    rig.recorder.turn()
    assert rig.events() == ["21 messages were not recorded"]


def test_a_card_that_never_answers_costs_everything_but_no_memory() -> None:
    rig = Rig()
    one, most = step(), recorder.ALL_MOST // waiting.SIZE
    for _ in range(most + 200):
        rig.recorder.put(format.STEP, one)
    assert rig.recorder._waiting <= recorder.ALL_MOST
    assert rig.recorder.dropped == 200


def test_a_stall_is_told_while_it_lasts() -> None:
    rig = Rig()
    states: list[str] = []

    def slow(file: int) -> None:
        for _ in range(2):
            rig.wait(1.5)
            states.append(rig.recorder.told().state)

    rig.disk.sync = slow  # type: ignore[method-assign]
    rig.picture()
    rig.recorder.turn()
    assert states == ["ok", "the card has not answered for 3 s"]
    assert rig.recorder.told().state == "ok"


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
def test_every_fault_is_a_state_in_words_and_tried_again(
    fault: Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    rig.drive(2)
    rig.disk.fault = fault  # type: ignore[assignment]
    rig.drive(1)
    assert words in rig.recorder.told().state and rig.recorder.dropped == 20
    before = len(rig.disk.did)
    rig.drive(1)
    assert len(rig.disk.did) == before, "left alone for a while"
    rig.drive(2)
    assert len(rig.disk.did) > before, "and tried again"
    assert caplog.text.count("not recording") == 1, "said once"
    rig.disk.fault = None
    rig.drive(5)
    told = rig.recorder.told()
    assert told.state == "ok" and told.dropped > 0
    rig.recorder.second()
    rig.recorder.turn()
    back, lost = rig.events()
    assert back.startswith("recording goes on after: ") and words in back
    assert lost == f"{told.dropped} messages were not recorded"
    assert rig.salvaged == ["Plague-20261121T193100Z-0001.mcap.part"]


LEFT = "Plague-20261120T193100Z-0001.mcap.part"


def test_what_is_left_of_a_run_before_does_not_hold_up_this_one() -> None:
    rig = Rig()
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
        rig.recorder.turn()
        rig.wait(max(0.0, (due_ns - rig.now_ns) / SECOND_NS))
        assert rig.recorder.told().state == "ok"
    gaps = [after - before for before, after in zip(synced, synced[1:], strict=False)]
    assert len(gaps) > 20 and max(gaps) < 0.85
    assert rig.salvaged == [LEFT]


@pytest.mark.parametrize(
    "fault", [OSError("no"), Damaged("it held before"), MemoryError(), KeyError()]
)
def test_what_cannot_be_salvaged_disturbs_nobody(fault: Exception) -> None:
    rig = Rig()
    rig.salvage_fault = fault
    rig.disk.files[LEFT] = bytearray(b"x")
    rig.drive(3)
    rig.disk.fault = FULL
    rig.drive(1)
    rig.disk.fault = None
    rig.salvage_fault = None
    rig.drive(5)
    assert rig.recorder.told().state == "ok"
    assert [name for name in rig.disk.names if name != LEFT] == [
        "Plague-20261121T193100Z-0001.mcap.part",
        "Plague-20261121T193100Z-0002.mcap.part",
    ]
    assert rig.salvaged == [rig.disk.names[1]], "each once in a run"


def test_a_fault_meanwhile_lets_go_of_what_is_being_sealed() -> None:
    rig = Rig()
    rig.salvage_steps = 10
    rig.disk.files[LEFT] = bytearray(b"x")
    rig.drive(1)
    rig.disk.fault = FULL
    rig.drive(1)
    rig.disk.fault = None
    rig.drive(9)
    assert LEFT not in rig.salvaged, "somebody else may have had the folder"
    assert rig.salvaged == ["Plague-20261121T193100Z-0001.mcap.part"]


def test_off_and_on_begins_another_recording() -> None:
    rig = Rig()
    rig.drive(3)
    rig.recorder.switch(True)  # it is on
    rig.recorder.switch(False)
    rig.drive(2)
    assert not rig.recorder.told().on
    rig.recorder.switch(True)
    rig.drive(2)
    names = rig.disk.names
    assert names == [
        "Plague-20261121T193100Z-0001.mcap",
        "Plague-20261121T193103Z-0001.mcap.roll",
        "Plague-20261121T193105Z-0001.mcap.part",
    ]
    rig.recorder._tape.close()
    assert rig.disk.names == [names[0], names[2].removesuffix(".part")]


def test_two_recordings_that_begin_in_one_second_are_two_files() -> None:
    rig = Rig()
    for on in (False, True, False, True):
        rig.drive(1)
        rig.now_ns -= SECOND_NS  # the same second again
        rig.utc_ns -= SECOND_NS
        rig.recorder.switch(on)
    rig.drive(1)
    assert [name.partition("Z-")[2] for name in rig.disk.names] == [
        "0001.mcap", "0002.mcap.roll", "0003.mcap", "0004.mcap.roll", "0005.mcap.part",
    ]  # fmt: skip


def test_a_message_that_cannot_be_encoded_costs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()

    def broken() -> format.Message:
        raise RuntimeError("a bug")

    for _ in range(3):
        rig.recorder.put(format.STEP, broken)
        rig.recorder.put(format.STEP, lambda: step(7))
    rig.recorder.turn()
    assert [one.topic for one in rig.messages()].count(format.STEP) == 3
    assert rig.recorder.dropped == 3 and rig.recorder.told().state == "ok"
    assert caplog.text.count("not recorded: channel") == 1


def test_what_came_before_it_was_switched_off_is_written() -> None:
    rig = Rig(minute=False)
    rig.drive(2, turns=False)
    rig.recorder.switch(False)
    rig.drive(1, turns=False)
    rig.recorder.turn()
    assert rig.disk.names == ["Plague-20261121T193100Z-0001.mcap"]
    assert [one.topic for one in rig.messages()].count(format.STEP) == 20
    assert rig.recorder.idle and not rig.recorder._waiting


def test_off_without_the_minute_writes_nothing() -> None:
    rig = Rig(on=False, minute=False)
    rig.drive(3)
    rig.recorder.keep()
    rig.recorder.turn()
    assert rig.disk.files == {} and rig.recorder.dropped == 0
    assert rig.recorder.told().kept == 0


def test_the_last_minute_can_be_kept_while_recording_is_off() -> None:
    rig = Rig(on=False)
    rig.drive(70)
    rig.recorder.keep()
    rig.recorder.turn()
    assert rig.recorder.told().kept == 1
    sealed = [name for name in rig.disk.names if name.endswith(".mcap")]
    shots = sum(
        Recording(BytesSource(bytes(rig.disk.files[name]))).counts[format.CAMERA]
        for name in sealed
    )
    assert shots >= 600


def test_the_minute_that_is_kept_ends_before_a_key_frame() -> None:
    for on in (True, False):
        rig = Rig(on=on, segment_s=60.0)
        rig.drive(5)
        for _ in range(4):
            rig.picture()
            rig.wait(0.1)
        rig.recorder.keep()
        rig.recorder.turn()
        first = "Plague-20261121T193100Z-0001.mcap"
        assert {first + ".part", first + ".keep"} <= set(rig.disk.names), "already"
        assert rig.recorder.told().kept == 1
        rig.drive(5)
        sequences = []
        for name in (one for one in rig.disk.names if not one.endswith(".keep")):
            made = Recording(BytesSource(bytes(rig.disk.files[name])))
            shots = list(made.messages([format.CAMERA]))
            picture = format.decode(shots[0].topic, shots[0].data)
            assert isinstance(picture, format.Picture) and picture.unit.startswith(KEY)
            sequences += [one.sequence for one in shots]
        assert sequences == list(range(len(sequences))) and len(sequences) >= 100
        assert first in rig.disk.names and len(rig.disk.names) == 3


def test_who_pushes_again_while_the_card_hangs_keeps_one_minute() -> None:
    rig = Rig()
    rig.drive(2)
    waiting_before = len(rig.recorder._queue)
    for _ in range(1000):
        rig.recorder.keep()
    assert len(rig.recorder._queue) == waiting_before + 1
    rig.recorder.turn()
    assert rig.recorder.told().kept == 1
    rig.drive(2)
    rig.recorder.keep()
    rig.recorder.turn()
    assert rig.recorder.told().kept == 2


def test_a_fault_at_a_switch_loses_no_recording() -> None:
    rig = Rig()
    rig.drive(2)
    rig.disk.fault = FULL
    rig.recorder.switch(False)
    rig.recorder.switch(True)
    rig.drive(1)
    rig.disk.fault = None
    rig.drive(5)
    assert "Plague-20261121T193102Z-0001.mcap.part" in rig.disk.names


@pytest.mark.parametrize("by_s", [3600.0, -86400.0, 1.0])
def test_a_clock_that_is_set_moves_no_message_backwards(by_s: float) -> None:
    rig = Rig()
    rig.drive(3)
    rig.utc_ns += round(by_s * SECOND_NS)
    rig.recorder.second()
    rig.drive(3)
    rig.recorder.turn()
    names = [name for name in rig.disk.names if ".mcap" in name]
    assert len({name[:23] for name in names}) == (1 if by_s == 1.0 else 2)
    for name in names:
        made = Recording(BytesSource(bytes(rig.disk.files[name])))
        times = [one.log_ns for one in made.messages()]
        assert times == sorted(times)
    assert len(rig.events()) == (0 if by_s == 1.0 else 1)


def test_the_thread_writes_and_seals(tmp_path: object) -> None:
    rig = Rig(sync_s=0.1)
    rig.recorder.start()
    rig.drive(2, turns=False)
    until(lambda: len(rig.messages()) >= 40)
    rig.recorder.stop()
    assert rig.disk.names == ["Plague-20261121T193100Z-0001.mcap"]
    assert not [one for one in threading.enumerate() if one.name == "recorder"]


class Strange(BaseException):
    """Nobody thought of it."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ends_is_told_and_another_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(sync_s=0.1)
    append = rig.disk.append

    def ends(file: int, parts: Sequence[bytes]) -> None:
        whole = len(parts) == 1  # the head
        append(file, parts if whole else [b"".join(parts)[:7000]])
        if not whole:
            rig.disk.append = append  # type: ignore[method-assign]
            raise Strange

    rig.disk.append = ends  # type: ignore[method-assign]
    rig.recorder.start()
    rig.drive(1, turns=False)
    rig.recorder.keep()
    until(lambda: rig.recorder.told().state == recorder.ENDED)
    said = f"nothing is recorded: {recorder.ENDED}"
    assert list(figures.faults(rig.recorder.told)) == [said]
    begun = rig.recorder.begun
    rig.recorder.second()
    assert recorder.ENDED in caplog.text and rig.recorder.begun == begun + 1
    rig.drive(2, turns=False)
    until(lambda: rig.recorder.told().state == "ok")
    rig.recorder.second()
    rig.recorder.stop()
    assert rig.events()[0] == f"recording goes on after: {recorder.ENDED}"
    assert rig.recorder.told().state == "ok" and not rig.recorder._waiting
    for name in (one for one in rig.disk.names if one.endswith(".mcap")):
        made = Recording(BytesSource(bytes(rig.disk.files[name])))
        assert made.whole, "no half chunk is left"


def test_stop_without_start_is_fine() -> None:
    Rig().recorder.stop()


def until(what: Callable[[], bool]) -> None:
    """Waits for a thread."""
    end_s = time.monotonic() + 5.0
    while not what():
        assert time.monotonic() < end_s
        time.sleep(0.005)
