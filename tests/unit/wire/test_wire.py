"""Every message on every wire, against the golden vectors that JavaScript reads too."""

import ast
import json
import math
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpvcar.config import PLAIN
from fpvcar.runtime.texts import VERBATIM, Text
from fpvcar.seat import drive_socket
from fpvcar.wire import down, up
from fpvcar.wire.buttons import ButtonsDownward, parse_buttons_upward
from fpvcar.wire.camera import DEPTH_HEADER, RECORD_HEADER, parse_depth_header, parse_record_header
from fpvcar.wire.errors import UnknownKind, WireError
from fpvcar.wire.json_text import encode_downward
from fpvcar.wire.video import UNIT_MAX_BYTES, pack_video, parse_fps, parse_video
from fpvcar.wire.wheels import (
    ANGLES,
    PACKET_MAX,
    WHY_SHORT,
    EscPulses,
    ServosWhy,
    Setpoint,
    pack_angles,
    pack_answer,
    pack_servos,
    pack_setpoint,
    pack_why,
    parse_angles,
    parse_answer,
    parse_packet,
    parse_setpoint,
)
from tests.vectors import make

VECTORS = Path(__file__).parents[2] / "vectors"


def vectors(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    return loaded


@pytest.mark.parametrize("name", make.FILES)
def test_vector_files_are_up_to_date(name: str) -> None:
    """A difference breaks older pages; for a change on purpose: python -m tests.vectors.make"""
    assert (VECTORS / f"{name}.json").read_text("utf-8") == make.rendered(name)


SOCKETS: dict[str, tuple[Callable[[str | bytes], Any], Any, str]] = {
    "drive": (up.parse_upward, down.Downward, "drive, end, estop, guard"),
    "buttons": (parse_buttons_upward, ButtonsDownward, "choose, hello, hold"),
}
"""Socket -> parser of the page's messages, the car's messages, known kinds in a refusal."""


@pytest.mark.parametrize("socket", SOCKETS)
def test_good_messages_of_a_page_are_parsed(socket: str) -> None:
    parse, *_ = SOCKETS[socket]
    for one in vectors(f"{socket}_up")["good"]:
        for text in (one["text"], one["text"].encode()):
            message = parse(text)
            assert parse(msgspec.json.encode(message)) == message
            assert message.__struct_config__.tag == json.loads(text)["kind"]


@pytest.mark.parametrize("socket", SOCKETS)
def test_refused_messages_of_a_page_name_fault_and_limit(socket: str) -> None:
    parse, *_ = SOCKETS[socket]
    for one in vectors(f"{socket}_up")["refused"]:
        with pytest.raises(WireError) as fault:
            parse(one["text"])
        assert fault.value.what and fault.value.limit
        assert len(fault.value.value) <= 80


@pytest.mark.parametrize("socket", SOCKETS)
def test_unknown_kind_error_lists_the_known_kinds(socket: str) -> None:
    parse, _, known = SOCKETS[socket]
    for one in vectors(f"{socket}_up")["unknown"]:
        with pytest.raises(UnknownKind) as fault:
            parse(one["text"])
        assert f'"{fault.value.value}"' in one["text"]
        assert known in fault.value.limit


@pytest.mark.parametrize("socket", SOCKETS)
def test_messages_of_the_car(socket: str) -> None:
    kinds = {kind.__struct_config__.tag: kind for kind in get_args(SOCKETS[socket][1])}
    for one in vectors(f"{socket}_down")["good"]:
        kind = kinds[json.loads(one["text"])["kind"]]
        message = msgspec.json.decode(one["text"], type=kind)
        assert msgspec.json.decode(encode_downward(message), type=kind) == message


def test_vectors_have_each_bound_and_each_fault() -> None:
    """Classes of examples that a change of the generator must not lose."""
    good, refused = (
        {one["text"] for one in vectors("drive_up")[name]} for name in ("good", "refused")
    )
    limit, picture = '{"kind":"limit","throttle":%s}', '{"kind":"picture","to":{%s}}'
    assert {limit % value for value in (0.0, 1.0)} <= good
    assert {limit % value for value in (-0.0001, 1.001, '"1"')} <= refused
    assert {picture % part for part in ('"width":64', '"width":null', '"flip":"both"')} <= good
    faults = ('"width":65', '"width":1922', '"flip":"boths"', '"night":"yes"', '"more":1')
    assert {picture % part for part in faults} <= refused
    name = '{"kind":"name","name":"%s"}'
    assert name % ("a" * 32) in good
    assert {name % text for text in ("a" * 33, "\u202egnirts")} <= refused
    assert {'{"kind":"name"}', '{"kind":"estop","more":1}'} <= refused


def test_video_frames() -> None:
    for one in vectors("video")["good"]:
        header, unit = parse_video(bytes.fromhex(one["hex"]))
        assert {**header._asdict(), "unit": unit.hex()} == one["fields"]
    for one in vectors("video")["refused"]:
        with pytest.raises(WireError):
            parse_video(bytes.fromhex(one["hex"]))


@pytest.mark.parametrize(
    ("text", "fps"),
    [("fps 1", 1), ("fps 120", 120), ("fps 0", None), ("fps 121", None), ("fps 9\n", None)]
    + [("fps -5", None), ("fps 1e2", None), ("fps ", None), ("key", None), (b"fps 9", None)],
)
def test_rate_that_a_page_can_show(text: object, fps: int | None) -> None:
    assert parse_fps(text) == fps


def test_video_frame_sequence_wraps() -> None:
    header, _ = parse_video(pack_video(True, 2**32 + 5, 0, b"x"))
    assert header.sequence == 5


def test_depth_records() -> None:
    found = vectors("depth_record")
    head = DEPTH_HEADER.size
    for one in found["good"]:
        data, fields = bytes.fromhex(one["hex"]), one["fields"]
        length, nearest_m, capture_us = parse_depth_header(data[:head])
        told = {"nearest_m": str(nearest_m), "capture_us": str(capture_us), "length": length}
        assert told == fields and len(data) == head + length
    _, blind_m, _ = parse_depth_header(bytes.fromhex(found["blind"]))
    assert math.isnan(blind_m)
    for one in found["refused"]:
        with pytest.raises(WireError):
            parse_depth_header(bytes.fromhex(one["hex"]))


def test_camera_records() -> None:
    size = RECORD_HEADER.size
    for one in vectors("camera_record")["good"]:
        record = bytes.fromhex(one["hex"])
        length, key, capture_us = parse_record_header(record[:size])
        fields = one["fields"]
        assert (key, str(capture_us)) == (fields["key"], fields["capture_us"])
        assert record[size : size + length].hex() == fields["unit"]
    for one in vectors("camera_record")["refused"]:
        with pytest.raises(WireError):
            parse_record_header(bytes.fromhex(one["hex"])[:size])


def test_setpoints() -> None:
    for one in vectors("wheels")["setpoint"]["good"]:
        setpoint = parse_setpoint(bytes.fromhex(one["hex"]))
        assert str(setpoint.deadline_ns) == one["fields"]["deadline_ns"]
        assert list(setpoint.duties) == one["fields"]["duties"]
        pulses = one["fields"]["pulses"]
        assert setpoint.pulses == (pulses and EscPulses(*pulses))
        assert pack_setpoint(setpoint).hex() == one["hex"]
    for one in vectors("wheels")["setpoint"]["refused"]:
        with pytest.raises(WireError):
            parse_setpoint(bytes.fromhex(one["hex"]))


def test_answers() -> None:
    for one in vectors("wheels")["answer"]["good"]:
        answer = parse_answer(bytes.fromhex(one["hex"]))
        assert (answer.status.name, answer.reason.name) == (
            one["fields"]["status"],
            one["fields"]["reason"],
        )
        assert pack_answer(answer).hex() == one["hex"]
    for one in vectors("wheels")["why"]["good"]:
        text = parse_packet(bytes.fromhex(one["hex"]))
        assert msgspec.to_builtins(text) == one["fields"]
    for one in vectors("wheels")["why"]["refused"]:
        with pytest.raises(WireError):
            parse_packet(bytes.fromhex(one["hex"]))
    text = Text("pins_lost", "lost: {action}", action=Text("gpio_write", "GPIO {gpio}", gpio=5))
    assert parse_packet(pack_why(text)) == text and parse_packet(pack_why(None)) is None
    for fault in (text, None):
        assert parse_packet(pack_servos(fault)) == ServosWhy(fault)
    for long in ("é" * 2000, "\x1b" * 2000):
        packet, cut = pack_why(VERBATIM(text=long)), VERBATIM(text=long[:WHY_SHORT])
        assert len(packet) <= PACKET_MAX and parse_packet(packet) == cut
    for one in vectors("wheels")["answer"]["refused"]:
        with pytest.raises(WireError):
            parse_answer(bytes.fromhex(one["hex"]))


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_random_browser_frame_is_parsed_or_refused(frame: bytes | str) -> None:
    for parse in (up.parse_upward, parse_buttons_upward):
        try:
            parse(frame)
        except WireError as fault:
            assert str(fault)


@given(st.binary(max_size=64))
def test_random_bytes_on_binary_wires_are_parsed_or_refused(data: bytes) -> None:
    for parse in (parse_video, parse_setpoint, parse_packet):
        try:
            parse(data)
        except WireError as fault:
            assert str(fault)


@given(st.binary(min_size=16, max_size=16))
def test_random_record_header_is_bounded_or_refused(head: bytes) -> None:
    try:
        length, _, _ = parse_record_header(head)
    except WireError:
        return
    assert 0 < length <= UNIT_MAX_BYTES


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=4),
)
def test_setpoints_survive_packing(seq: int, deadline: int, duties: list[float]) -> None:
    setpoint = Setpoint(seq, deadline, tuple(duties))
    tuned = setpoint._replace(pulses=EscPulses(1512.5, 62.5))
    assert parse_setpoint(pack_setpoint(tuned)) == tuned
    assert parse_setpoint(pack_setpoint(setpoint)) == setpoint


@given(st.lists(st.floats(-135, 135, width=32), max_size=6))
def test_angles_survive_packing(angles: list[float]) -> None:
    packet = pack_angles(tuple(angles))
    assert parse_angles(packet) == tuple(angles) and len(packet) <= PACKET_MAX


@pytest.mark.parametrize(
    "packet",
    [
        pack_angles((1.0, 2.0))[:-1],
        bytes((9,)) + pack_angles((1.0,))[1:],
        pack_angles((math.nan,)),
        pack_angles((math.inf,)),
        ANGLES.pack(1, 4, 7, *(0.0,) * 6),
    ],
)
def test_damaged_angles_are_no_angles(packet: bytes) -> None:
    assert parse_angles(packet) is None


def test_errors_name_fault_value_and_limit() -> None:
    assert str(WireError("duty", 1.5, "-1 to 1")) == "duty: 1.5 (expected -1 to 1)"
    assert str(WireError("gone")) == "gone"
    assert len(WireError("x", "y" * 500).value) == 80


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("head", ["", '{"kind":"mark","text":'])
def test_deep_nesting_is_refused_as_malformed(opening: str, head: str) -> None:
    """Brackets of a stranger cost a strike, and no traceback in the log."""
    frame = (head + opening * 4096)[:4096]
    for parse in (up.parse_upward, parse_buttons_upward):
        with pytest.raises(WireError, match=r"malformed JSON|message refused"):
            parse(frame)


def test_invisible_characters_are_refused() -> None:
    """Comparison of the pattern with Unicode's own tables, as far as both cover."""
    bad = {"Cc", "Cf", "Zl", "Zp"}
    blank = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters and symbols without a picture
    plain = re.compile(PLAIN)
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in bad or char in blank:
            assert not plain.search(f"a{char}b"), hex(code)
        elif unicodedata.category(char)[0] in "LNPSM":
            assert plain.search(f"a{char}b"), hex(code)
    assert not plain.search("Ann\n"), "also at the end"


def test_name_with_control_character_is_refused_in_words() -> None:
    frame = '{"kind":"hello","v":1,"client":"abcdefgh-1","name":"a\\u001b[2J"}'
    with pytest.raises(WireError) as refused:
        up.parse_upward(frame)
    assert refused.value.limit == "Expected `str` of plain characters - at `$.name`"


def test_refused_value_writes_no_log_line() -> None:
    fault = WireError("name", "a\nfpvcar.gate: driving\x1b[2J")
    assert str(fault).isprintable()


def test_server_errors_all_name_their_code() -> None:
    sent = set()
    for path in Path(drive_socket.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if ast.unparse(node.func) in ("Error", "down.Error"):
                codes = [*node.args[4:], *(one.value for one in node.keywords)]
                sent.add(ast.literal_eval(codes[0]) if codes else path.name)
    assert sent == {*get_args(down.ErrorCode), "text_session.py"} - {"refused"}
