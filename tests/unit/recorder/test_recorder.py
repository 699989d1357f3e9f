"""Recorder: contents of each file, on and off, and the minute that is kept."""

import msgspec
import pytest
from testkit.hub import PROFILE
from testkit.recorder.recorder import Rig
from testkit.recorder.recording import KEY, UTC_NS, first_unit, step

from fpvcar.recordings import messages
from fpvcar.runtime.units import SECOND_NS


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_put_message_is_written_with_its_times(rig: Rig) -> None:
    rig.picture()
    rig.recorder.put(messages.STEP, step(), rig.now_ns - 7)
    rig.wait(0.8)
    rig.thread.turn()
    repeated = (messages.ABOUT, messages.TRANSFORMS, messages.CALIBRATION)
    shot, one = (m for m in rig.messages() if m.topic not in repeated)
    assert (shot.topic, one.topic) == (messages.CAMERA, messages.STEP)
    assert shot.log_ns == UTC_NS and shot.publish_ns == UTC_NS - 5_000_000
    assert one.log_ns == one.publish_ns == UTC_NS - 7
    (picture,) = rig.said(messages.CAMERA)
    assert picture.capture_ns == UTC_NS - 5_000_000
    assert picture.unit.startswith(KEY)


def test_recording_begins_with_a_key_frame(rig: Rig) -> None:
    rig.pictures = 3
    rig.drive(2)
    rig.thread.turn()
    shots = rig.said(messages.CAMERA)
    assert len(shots) == 13 and rig.recorder.dropped == 0 and shots[0].unit.startswith(KEY)


def test_status_reports_state_seconds_and_free_space(rig: Rig) -> None:
    rig.drive(3)
    told = rig.recorder.status()
    assert told.on and told.state == "ok" and told.seconds == pytest.approx(3.0)
    assert told.free_mb is not None and 490 < told.free_mb < 500
    assert told.dropped == told.kept == 0


def test_files_begin_with_key_frames_and_none_is_lost_between(rig: Rig) -> None:
    rig.drive(21)
    rig.thread.turn()
    files = [name for name in rig.disk.names if name.endswith(".mcap")]
    assert len(files) == 4
    shots = [one for one in rig.messages() if one.topic == messages.CAMERA]
    assert [one.sequence for one in shots] == list(range(210))
    for name in files:
        assert first_unit(rig.disk.recording(name)).startswith(KEY)


def test_off_and_on_begins_another_recording(rig: Rig) -> None:
    rig.drive(3)
    rig.recorder.switch(True)  # recording is on
    rig.recorder.switch(False)
    rig.drive(2)
    assert not rig.recorder.status().on
    rig.recorder.switch(True)
    rig.drive(2)
    names = rig.disk.names
    assert names == [
        "Plague-20261121T193100Z-0001.mcap",
        "Plague-20261121T193103Z-0001.mcap.roll",
        "Plague-20261121T193105Z-0001.mcap.part",
    ]
    rig.rotation.close()
    assert rig.disk.names == [names[0], names[2].removesuffix(".part")]


def test_profile_change_begins_another_recording(rig: Rig) -> None:
    rig.drive(2)
    begun = rig.recorder.begun
    for mps in (2.0, 2.0):
        guard = msgspec.structs.replace(PROFILE.guard, top_mps=mps)
        rig.recorder.tune(msgspec.structs.replace(PROFILE, guard=guard))
        rig.drive(2)
    assert rig.recorder.begun == begun + 1
    rig.thread.turn()
    tops = [one.profile["guard"]["top_mps"] for one in rig.said(messages.ABOUT)]
    assert list(dict.fromkeys(tops)) == [PROFILE.guard.top_mps, 2.0]


def test_reframe_other_size_begins_recording_tune_keeps_it(rig: Rig) -> None:
    begun = rig.recorder.begun
    camera = msgspec.structs.replace(PROFILE.camera, width=320, height=240, fov_deg=90.0)
    rig.drive(2)
    for one in (camera, camera, msgspec.structs.replace(camera, brightness=0.5)):
        rig.recorder.reframe(one)
    assert rig.recorder.begun == begun + 1
    rig.recorder.tune(PROFILE)
    rig.drive(2)
    assert rig.recorder.begun == begun + 1
    rig.thread.turn()
    found = [one.camera[:2] for one in rig.said(messages.CALIBRATION)]
    assert list(dict.fromkeys(found)) == [(640, 480), (320, 240)]


def test_two_recordings_that_begin_in_one_second_are_two_files(rig: Rig) -> None:
    for on in (False, True, False, True):
        rig.drive(1)
        rig.now_ns -= SECOND_NS  # the same second again
        rig.utc_ns -= SECOND_NS
        rig.recorder.switch(on)
    rig.drive(1)
    assert [name.partition("Z-")[2] for name in rig.disk.names] == [
        "0001.mcap",
        "0002.mcap.roll",
        "0003.mcap",
        "0004.mcap.roll",
        "0005.mcap.part",
    ]


def test_message_that_cannot_be_encoded_costs_no_other(
    caplog: pytest.LogCaptureFixture, rig: Rig
) -> None:

    def broken() -> messages.Message:
        raise RuntimeError("a bug")

    for _ in range(3):
        rig.recorder.put(messages.STEP, broken)
        rig.recorder.put(messages.STEP, lambda: step(7))
    rig.thread.turn()
    assert [one.topic for one in rig.messages()].count(messages.STEP) == 3
    assert rig.recorder.dropped == 3 and rig.recorder.status().state == "ok"
    assert caplog.text.count("not recorded: channel") == 1


def test_messages_before_switching_off_are_written() -> None:
    rig = Rig(minute=False)
    rig.drive(2, turns=False)
    rig.recorder.switch(False)
    rig.drive(1, turns=False)
    rig.thread.turn()
    assert rig.disk.names == ["Plague-20261121T193100Z-0001.mcap"]
    assert [one.topic for one in rig.messages()].count(messages.STEP) == 20
    assert rig.recorder.idle and not rig.handover.waiting_bytes


def test_off_without_the_minute_writes_nothing() -> None:
    rig = Rig(on=False, minute=False)
    rig.drive(3)
    rig.recorder.keep()
    rig.thread.turn()
    assert rig.disk.files == {} and rig.recorder.dropped == 0
    assert rig.recorder.status().kept == 0


def test_last_minute_can_be_kept_while_recording_is_off() -> None:
    rig = Rig(on=False)
    rig.drive(70)
    rig.recorder.keep()
    rig.thread.turn()
    assert rig.recorder.status().kept == 1
    sealed = [name for name in rig.disk.names if name.endswith(".mcap")]
    shots = sum(rig.disk.recording(name).counts[messages.CAMERA] for name in sealed)
    assert shots >= 600


def test_kept_minute_ends_before_a_key_frame() -> None:
    for on in (True, False):
        rig = Rig(on=on, segment_s=60.0)
        rig.drive(5)
        for _ in range(4):
            rig.picture()
            rig.wait(0.1)
        rig.recorder.keep()
        rig.thread.turn()
        first = "Plague-20261121T193100Z-0001.mcap"
        assert {first + ".part", first + ".keep"} <= set(rig.disk.names), "already"
        assert rig.recorder.status().kept == 1
        rig.drive(5)
        sequences = []
        for name in (one for one in rig.disk.names if not one.endswith(".keep")):
            made = rig.disk.recording(name)
            assert first_unit(made).startswith(KEY)
            sequences += [one.sequence for one in made.messages([messages.CAMERA])]
        assert sequences == list(range(len(sequences))) and len(sequences) >= 100
        assert first in rig.disk.names and len(rig.disk.names) == 3


def test_repeated_keep_while_the_card_hangs_keeps_one_minute(rig: Rig) -> None:
    rig.drive(2)
    waiting_before = len(rig.handover._queue)
    for _ in range(1000):
        rig.recorder.keep()
    assert len(rig.handover._queue) == waiting_before + 1
    rig.thread.turn()
    assert rig.recorder.status().kept == 1
    rig.drive(2)
    rig.recorder.keep()
    rig.thread.turn()
    assert rig.recorder.status().kept == 2


@pytest.mark.parametrize("by_s", [3600.0, -86400.0, 1.0])
def test_clock_change_moves_no_message_backwards(by_s: float, rig: Rig) -> None:
    rig.drive(3)
    rig.utc_ns += round(by_s * SECOND_NS)
    rig.recorder.second()
    rig.drive(3)
    rig.thread.turn()
    names = [name for name in rig.disk.names if ".mcap" in name]
    assert len({name[:23] for name in names}) == (1 if by_s == 1.0 else 2)
    for name in names:
        made = rig.disk.recording(name)
        times = [one.log_ns for one in made.messages()]
        assert times == sorted(times)
    assert len(rig.events()) == (0 if by_s == 1.0 else 1)


@pytest.mark.parametrize(
    ("settings", "said"), [({}, True), ({"on": False, "minute": False}, False)]
)
def test_recording_dated_1970_is_logged_with_a_remedy(
    settings: dict[str, bool], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(**settings)
    assert caplog.text == ""
    rig.utc_ns = 90 * SECOND_NS
    rig.recorder.second()
    assert ("first to go" in caplog.text) is said
    assert ("sudo date -s" in caplog.text) is said
    assert ("1970-01-01 00:01 UTC" in caplog.text) is said
    caplog.clear()
    rig.utc_ns = UTC_NS
    rig.recorder.second()
    assert "wrong date" not in caplog.text
