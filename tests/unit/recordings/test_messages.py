"""Messages of a recording: round trip through our and foreign code."""

import io
import math
import struct
from contextlib import suppress

import pytest
from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedVideo_pb2 import CompressedVideo
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.Log_pb2 import Log
from foxglove_schemas_protobuf.PackedElementField_pb2 import PackedElementField
from foxglove_schemas_protobuf.PointCloud_pb2 import PointCloud
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory
from mcap_protobuf.schema import build_file_descriptor_set
from testkit.recorder.recording import KEY, PROFILE, TOPICS, about, file, step

from fpvcar.drive import gate, guard, mixing
from fpvcar.recordings import codec, messages, mounts
from fpvcar.recordings.export.point_cloud import BEAM_POINTS, points_of
from fpvcar.recordings.mcap import calibration, protobuf
from fpvcar.recordings.mcap.calibration import Pinhole
from fpvcar.recordings.mcap.frames import Transform
from fpvcar.recordings.messages import FormatError

TIMES = st.integers(0, 2**62)
REAL = st.floats(allow_nan=False, allow_infinity=False)
CAUSES = st.sampled_from(gate.Cause)
HOLDS = st.none() | st.builds(gate.Hold, CAUSES, st.text(max_size=9))
LATCHES = st.builds(gate.Latches, st.none() | CAUSES, HOLDS)
RANGES = st.builds(messages.Range, st.text(max_size=5), REAL, st.none() | REAL, st.none() | REAL)
STEPS = st.builds(
    messages.Step,
    now_ns=TIMES,
    limit=REAL,
    latches=LATCHES,
    throttle=REAL,
    steer=REAL,
    slew=st.builds(mixing.Slew, REAL, REAL, REAL),
    reason=st.just("driving"),
    after=LATCHES,
    duties=st.tuples(REAL, REAL),
    wish=st.none() | st.builds(messages.Wish, REAL, REAL, st.none() | REAL),
    picture_age_s=st.none() | REAL,
    fault=st.none() | CAUSES,
    volts=st.none() | REAL,
    free=st.builds(guard.Free, REAL, REAL),
    ranges=st.lists(RANGES, max_size=3).map(tuple),
)


@given(STEPS)
def test_step_round_trips_bit_for_bit(one: messages.Step) -> None:
    back = codec.decode(messages.STEP, codec.encode(one))
    assert back == one
    assert repr(back) == repr(one), "-0.0 too"


SMALL = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(TIMES, st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=6), st.text(max_size=9))
def test_points_encoded_equal_protobuf(
    when: int, points: list[tuple[float, float, float]], frame: str
) -> None:
    theirs = PointCloud(frame_id=frame, point_stride=12)
    theirs.timestamp.seconds, theirs.timestamp.nanos = divmod(when, 10**9)
    theirs.pose.orientation.w = 1.0
    for number, name in enumerate("xyz"):
        field = PackedElementField(name=name, offset=4 * number, type=PackedElementField.FLOAT32)
        theirs.fields.append(field)
    theirs.data = b"".join(struct.pack("<3f", *one) for one in points)
    said = messages.Points(when, tuple(points), frame)
    ours = codec.encode(said)
    assert ours == theirs.SerializeToString(deterministic=True)
    assert codec.decode("/points/front", ours) == said


def test_range_reading_becomes_an_arc_around_the_car() -> None:
    """Left is +y; the place of an echo within its cone is unknown."""
    arc = points_of(5, messages.Reading(90.0, 2.0)).points
    assert len(arc) == BEAM_POINTS and arc[2] == pytest.approx((0.0, 2.0, 0.0))
    assert all(math.hypot(x, y) == pytest.approx(2.0) and z == 0.0 for x, y, z in arc)
    wide_deg = [math.degrees(math.atan2(y, x)) for x, y, _ in (arc[0], arc[-1])]
    assert wide_deg == pytest.approx([77.5, 102.5])
    assert points_of(5, messages.Reading(0.0, None)).points == ()


@given(TIMES, st.binary(max_size=300), st.text(max_size=9))
def test_video_encoded_equals_protobuf(when: int, unit: bytes, frame: str) -> None:
    theirs = CompressedVideo(frame_id=frame, data=unit, format="h264")
    theirs.timestamp.seconds, theirs.timestamp.nanos = divmod(when, 10**9)
    picture = messages.Picture(when, unit, "h264", frame)
    ours = codec.encode(picture)
    parsed = CompressedVideo.FromString(ours)
    assert parsed == theirs
    if unit:  # their writer omits an empty field
        assert ours == theirs.SerializeToString(deterministic=True)
    assert codec.decode(messages.CAMERA, theirs.SerializeToString()) == picture


@given(TIMES, st.integers(0, 5), st.text(max_size=40), st.text(max_size=9))
def test_log_line_encoded_equals_protobuf(when: int, level: int, text: str, name: str) -> None:
    theirs = Log(level=level, message=text, name=name)  # type: ignore[arg-type]
    theirs.timestamp.seconds, theirs.timestamp.nanos = divmod(when, 10**9)
    theirs.line = 7  # an unused field
    event = messages.Event(when, level, text, name)
    assert Log.FromString(codec.encode(event)).message == text
    assert codec.decode(messages.EVENT, theirs.SerializeToString()) == event
    theirs.line = 0
    assert codec.encode(event) == theirs.SerializeToString(deterministic=True)


def test_transforms_encoded_equal_protobuf() -> None:
    theirs = FrameTransforms()
    for child, x, w in (("camera", 0.0, 0.5), ("range_front", 0.1, 1.0)):
        one = theirs.transforms.add(parent_frame_id="car", child_frame_id=child)
        one.timestamp.seconds, one.timestamp.nanos = 5, 7
        one.translation.x, one.translation.z = x, -0.25
        one.rotation.w = w
    ours = messages.Transforms(
        5_000_000_007,
        (
            Transform("car", "camera", (0.0, 0.0, -0.25), (0.0, 0.0, 0.0, 0.5)),
            Transform("car", "range_front", (0.1, 0.0, -0.25), (0.0, 0.0, 0.0, 1.0)),
        ),
    )
    data = codec.encode(ours)
    assert data == theirs.SerializeToString(deterministic=True)
    assert codec.decode(messages.TRANSFORMS, data) == ours
    assert (
        FrameTransforms.FromString(
            codec.encode(messages.Transforms(0, (Transform("", "", (0, 0, 0), (0, 0, 0, 0)),)))
        )
        .transforms[0]
        .HasField("rotation")
    )


def test_mounts_are_the_profiles_places_and_bearings() -> None:
    left = {"bearing_deg": 90.0, "x_m": 0.1, "y_m": 0.05, "z_m": 0.04}
    profile = {
        "camera": {"x_m": 0.08, "z_m": 0.12},
        "sensors": {"tof": {"left": left}, "ultrasound": {"rear": {}}},
        "depth": {"source": "bench", "y_m": -0.02},
    }
    places = {one.child: one for one in mounts.transforms(profile)}
    assert list(places) == ["camera", "range_left", "range_rear", "range_depth"]
    assert {one.parent for one in places.values()} == {"car"}
    assert places["camera"][2:] == ((0.08, 0.0, 0.12), (-0.5, 0.5, -0.5, 0.5))
    half = math.sqrt(0.5)
    assert places["range_left"].translation == (0.1, 0.05, 0.04)
    assert places["range_left"].rotation == pytest.approx((0.0, 0.0, half, half))
    assert places["range_rear"][2:] == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    assert mounts.positions(profile) == {
        "left": (0.1, 0.05, 0.04),
        "rear": (0.0, 0.0, 0.0),
        "depth": (0.0, -0.02, 0.0),
    }
    assert [one.child for one in mounts.transforms({})] == ["camera"]
    arc = points_of(5, messages.Reading(90.0, 2.0), (0.1, 0.05, 0.04)).points
    assert arc[2] == pytest.approx((0.1, 2.05, 0.04))


def test_calibration_encoded_equals_protobuf() -> None:
    theirs = CameraCalibration(frame_id="camera", width=640, height=480)
    theirs.timestamp.seconds, theirs.timestamp.nanos = 5, 7
    theirs.K.extend((450.0, 0, 320, 0, 450.0, 240, 0, 0, 1))
    theirs.R.extend((1, 0, 0, 0, 1, 0, 0, 0, 1))
    theirs.P.extend((450.0, 0, 320, 0, 0, 450.0, 240, 0, 0, 0, 1, 0))
    ours = messages.Calibration(5_000_000_007, Pinhole(640, 480, 450.0))
    data = codec.encode(ours)
    assert data == theirs.SerializeToString(deterministic=True)
    assert codec.decode(messages.CALIBRATION, data) == ours


PLOT = messages.Plot(5_000_000_007, ("a", "front_m", ""), (0.1, -2.5, 3.0))


def test_plot_encoded_is_aligned_cdr_and_decodes() -> None:
    data = codec.encode(PLOT)
    head = b"\0\1\0\0" + struct.pack("<iI", 5, 7) + b"\1\0\0\0\0\0\0\0"
    names = b"\3\0\0\0\2\0\0\0a\0\0\0\x08\0\0\0front_m\0\1\0\0\0\0\0\0\0"
    values = b"\3\0\0\0" + bytes(4) + struct.pack("<3d", 0.1, -2.5, 3.0)
    assert len(head + names) % 8 == 4, "the count is at 48, the doubles begin at 56"
    assert data == head + names + values + bytes(8)
    assert codec.decode(messages.PLOT, data) == PLOT


@pytest.mark.parametrize("size", [0, 3, 4, 11, 17, 24, 30, 44, 60, 83])
def test_plot_cut_or_damaged_is_refused(size: int) -> None:
    data = codec.encode(PLOT)
    with pytest.raises(FormatError, match="/plot: "):
        codec.decode(messages.PLOT, data[:size])
    for at in range(4, len(data)):
        with suppress(FormatError):
            codec.decode(messages.PLOT, data[:at] + b"\xff" * 4 + data[at + 4 :])


def test_intrinsics_known_field_of_view_gives_focal_length() -> None:
    camera = {"width": 640, "height": 480, "fov_deg": 90.0, "flip": "both"}
    found = mounts.intrinsics({"camera": camera})
    assert found is not None and found == pytest.approx((640, 480, 320.0))
    assert calibration.pinhole(1280, 720, 60.0).focal_px == pytest.approx(1108.5125)


@pytest.mark.parametrize("flip", ["horizontal", "vertical"])
def test_intrinsics_mirrored_or_unknown_are_none(flip: str) -> None:
    camera = {"width": 640, "height": 480, "fov_deg": 90.0, "flip": flip}
    assert mounts.intrinsics({"camera": camera}) is None
    assert mounts.intrinsics({"camera": {"width": 640, "height": 480, "fov_deg": None}}) is None
    assert mounts.intrinsics({}) is None


def test_schemas_equal_those_of_foxglove() -> None:
    by_name = {one.name: one for one in TOPICS}
    for topic, kind in (
        (messages.CAMERA, CompressedVideo),
        (messages.EVENT, Log),
        (messages.POINTS + "front", PointCloud),
        (messages.TRANSFORMS, FrameTransforms),
        (messages.CALIBRATION, CameraCalibration),
    ):
        theirs = build_file_descriptor_set(kind)
        ours = type(theirs).FromString(by_name[topic].schema_data)
        assert {one.name: one for one in ours.file} == {one.name: one for one in theirs.file}


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (messages.WISH, messages.WishIn(7, 12.5, 0.1, -0.3, "Zoë", "stale", 90_000_123_456)),
        (messages.DRIVER, messages.Turn(None, "Ann released the wheel")),
        (messages.STINTS, messages.Stints((messages.Stint(5, 7, "Zoë", 1.25, {"estop": 2}),))),
        (messages.LIGHTS, messages.Lights(True, False, True)),
        (messages.BUTTONS, messages.Buttons(("red", "blue"), "turn", 3, 1, 7)),
        (
            messages.HEALTH,
            messages.Health("ok", "ok", "no battery sensor", 2, {"celsius": 48.5}, ("hot",)),
        ),
        (messages.LATENCY, messages.Latency("Ann", True, "webcodecs", 12.5, None, 29.9, 3)),
        (messages.BATTERY, messages.Battery(7.4, 1.25, 0.6, False)),
    ],
)
def test_other_messages_round_trip(topic: str, message: messages.Message) -> None:
    assert codec.decode(topic, codec.encode(message)) == message


def test_recorded_profile_parses() -> None:
    back = codec.decode(messages.ABOUT, codec.encode(about()))
    assert isinstance(back, messages.About) and back.parsed() == PROFILE
    assert (back.car, back.segment, back.utc_offset_ns) == ("Plague", 1, 17)


def test_never_fresh_wish_round_trips() -> None:
    let_go = gate.Wish(0.0, 0.0, -math.inf)
    recorded = step(wish=messages.wish_of(let_go))
    back = codec.decode(messages.STEP, codec.encode(recorded))
    assert isinstance(back, messages.Step) and back.wished() == let_go
    assert step(wish=None).wished() is None and messages.wish_of(None) is None
    fresh = gate.Wish(0.5, -0.25, 4.97)
    assert step(wish=messages.wish_of(fresh)).wished() == fresh


def test_step_gives_world_and_decision_of_the_gate() -> None:
    one = step(fault=gate.Cause.PINS, free=guard.Free(0.5, 1.0))
    assert one.world() == gate.World(0.0123, gate.Cause.PINS, 1.0, guard.Free(0.5, 1.0))
    assert one.decision() == (0.5, -0.25, "driving", gate.Latches(None, None))


MATRIX = b"\x32\x48" + bytes(72)


@pytest.mark.parametrize(
    ("topic", "data", "words"),
    [
        ("/points/front", b"\x30\x05", "/points/front"),
        ("/points/front", b"\x32\x01x", "/points/front"),
        ("/points/front", b"\x0a\x05", "/points/front"),
        ("/tf", b"\x08\x05", "/tf: "),  # a number where a transform is expected
        ("/tf", b"\x12\x00", "/tf: "),  # field 2
        ("/tf", b"\x0a\x02\x20\x01", "/tf: "),  # a number for the translation
        ("/tf", b"\x0a\x04\x22\x02\x08\x01", "/tf: "),  # a number for x
        ("/tf", b"\x0a\x07\x22\x05\x0d\0\0\0\0", "/tf: "),  # a float for x
        ("/tf", b"\x0a\x0b\x2a\x09\x29" + bytes(8), "/tf: "),  # a fifth double
        ("/camera_info", b"", "/camera_info: "),
        ("/camera_info", b"\x30\x05", "/camera_info: "),
        ("/camera_info", b"\x32\x01x", "/camera_info: "),
        ("/camera_info", MATRIX, "/camera_info: "),
        ("/camera_info", MATRIX + b"\x10\x05", "/camera_info: "),
        ("/camera_info", b"\x0a\x05", "/camera_info: "),
        ("/weather", b"{}", "unknown topic"),
        ("/wish", b"{", "/wish"),
        ("/wish", b'{"seq":"one"}', "/wish"),
        ("/range/front", b"\xff", "/range/front"),
        ("/camera", b"\x0a", "number cut"),
        ("/camera", b"\x0a\x05", "5 bytes, 0 left"),
        ("/camera", b"\x00\x00", "field 0"),
        ("/camera", b"\x0b", "wire type 3"),
        ("/camera", b"\x18\x01", "number where a picture"),
        ("/camera", b"\x08\x01", "number where a timestamp"),
        ("/camera", b"\x0a\x04\x0a\x02ab", "bytes where a number"),
        ("/camera", b"\x22\x01\xff", "not UTF-8"),
        ("/camera", b"\x20\x01", "number where text"),
        ("/camera", b"\x08" + b"\x80" * 11, "more than 10 bytes"),
        ("/event", b"\x12\x01a", "bytes where a level"),
        ("/mark", b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01", "expected 1970 to 2262"),
    ],
)
def test_malformed_message_is_refused_with_its_reason(topic: str, data: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        codec.decode(topic, data)


def test_fixed_size_fields_are_skipped() -> None:
    data = b"\x39" + bytes(8) + b"\x3d" + bytes(4) + b"\x22\x04h264"
    assert list(protobuf.fields(data))[-1] == (4, b"h264")
    assert codec.decode(messages.CAMERA, data) == messages.Picture(0, b"", "h264", "")


def test_schemas_have_an_object_at_their_root() -> None:
    for topic in TOPICS:
        if topic.coding == "json":
            assert b'"type":"object"' in topic.schema_data.partition(b"properties")[0]


def test_foreign_readers_open_a_recording() -> None:
    data = file(chunks=12)
    reader = make_reader(io.BytesIO(data), validate_crcs=True, decoder_factories=[DecoderFactory()])
    summary = reader.get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.chunk_count == len(summary.chunk_indexes) == 12
    decoded = list(reader.iter_decoded_messages(topics=[messages.CAMERA]))
    assert len(decoded) == 36
    _, channel, message, video = decoded[0]
    assert channel.topic == "/camera" and message.log_time > 0
    assert video.format == "h264" and video.data.startswith(KEY)
    assert video.timestamp.ToNanoseconds() == message.log_time - 1000
    everything = list(reader.iter_messages(log_time_order=False))
    assert len(everything) == summary.statistics.message_count == 12 * 7 + 4 + 4 + 4
    records = list(StreamReader(io.BytesIO(data), validate_crcs=True).records)
    assert sum(type(one).__name__ == "Message" for one in records) == len(everything)
    metadata = list(reader.iter_metadata())
    assert [one.name for one in metadata] == [messages.METADATA]
    assert metadata[0].metadata["car"] == "Plague"
