"""Live copy of the recorder's messages: what a file would have, for a reader that may be slow."""

from collections.abc import Sequence

from testkit.recorder.fed_car import Car
from testkit.recorder.recorder import Rig

from fpvcar.recorder import live
from fpvcar.recordings import messages
from fpvcar.recordings.mcap.parsing import Channel
from fpvstation.cli.foxglove import Message, Records


def read(tap: live.Tap) -> Sequence[tuple[str, int, bytes]]:
    """Return topic, time and data of the messages so far, as a station parses them."""
    parser, topics, found = Records(), dict[int, str](), list[tuple[str, int, bytes]]()
    for record in parser.add(tap.head + tap.take()):
        if isinstance(record, Channel):
            topics[record.number] = record.topic
        elif isinstance(record, Message):
            found.append((topics[record.channel], record.log_ns, record.data))
    return found


def test_live_copy_has_the_messages_of_the_file() -> None:
    rig = Rig()
    with rig.recorder.tapped() as tap:
        rig.recorder.introduce()
        rig.drive(3)
        copied = read(tap)
    rig.thread.turn()
    filed = [(one.topic, one.log_ns, bytes(one.data)) for one in rig.messages()]
    repeated = {messages.ABOUT, messages.TRANSFORMS, messages.CALIBRATION, messages.STINTS}
    assert [one for one in copied if one[0] not in repeated] == [
        one for one in filed if one[0] not in repeated
    ]
    assert {one[0] for one in copied} & repeated == repeated - {messages.STINTS}
    rig.drive(1)
    assert not tap.take()


def test_live_copy_begins_with_a_key_frame_and_drops_all_that_waits_too_long() -> None:
    rig = Rig()
    rig.picture()
    with rig.recorder.tapped() as tap:
        rig.drive(1)
        shots = [data for topic, _, data in read(tap) if topic == messages.CAMERA]
        assert len(shots) == 1 and b"\x65" in shots[0]
        for _ in range(9):
            rig.picture(live.MOST // 8)
        assert tap.dropped and not tap.take()
        rig.picture()
        rig.drive(1)
        assert [topic for topic, _, _ in read(tap)].count(messages.CAMERA) == 11


def test_live_copy_needs_no_recording() -> None:
    rig = Rig(on=False, minute=False)
    assert rig.recorder.idle
    with rig.recorder.tapped() as tap:
        rig.drive(2)
        assert [topic for topic, _, _ in read(tap)].count(messages.STEP) == 20
    rig.thread.turn()
    assert rig.recorder.idle and rig.disk.files == {} and rig.recorder.dropped == 0


def test_live_copy_begins_with_the_car_and_its_lasting_states() -> None:
    car = Car()
    car.feed.turn("Ann", "Ann drives")
    with car.feed.tapped() as tap:
        topics = [topic for topic, _, _ in read(tap)]
    assert {messages.ABOUT, messages.TRANSFORMS, messages.DRIVER} <= set(topics)
    assert car.keys
