"""A function for each parser, with any bytes as input; each assertion must hold for all inputs.

These check more than the absence of crashes: an accepted value is in range and survives a round
trip, a refusal gives its reason, and nothing depends on how the bytes were cut.
"""

import ipaddress
import json
import math
import re
import tomllib
import zlib
from collections.abc import Callable
from contextlib import suppress

import msgspec
from testkit.hub import CODES, House
from testkit.pins.wheels_car import PINS, Car
from testkit.recorder.recording import BytesSource

from fpvcar.config import ConfigError, profiles
from fpvcar.http import addresses
from fpvcar.http.text_session import SessionClosed
from fpvcar.intercom.socket import LATE_S, SpeakerQueue
from fpvcar.recordings import codec
from fpvcar.recordings.mcap.parsing import RecordingError, take_chunk
from fpvcar.recordings.messages import FormatError
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.recover import rewritten
from fpvcar.video import h264
from fpvcar.video.access_unit_records import AnnexBSplitter, RecordSplitter, Splitter
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.process import BITRATES
from fpvcar.video.process import Control as CameraControl
from fpvcar.wheels.controller import AHEAD_MAX_NS, Lease
from fpvcar.wire import up
from fpvcar.wire.camera import pack_record
from fpvcar.wire.errors import WireError
from fpvcar.wire.intercom import FRAME_BYTES, pack_sound, parse_sound
from fpvcar.wire.video import pack_video, parse_video
from fpvcar.wire.wheels import (
    ANSWER,
    SETPOINT,
    pack_answer,
    pack_setpoint,
    parse_answer,
    parse_setpoint,
)
from tests.fuzz.emulator import pieces, pigpiod, pipe
from tests.fuzz.panel import buttons

NOW_NS = 10**12
NOW_US = 2**62
SECRETS = (CODES.drive, CODES.grown_up)


def drive_up(data: bytes) -> None:
    """/ws/drive: an accepted message is finite, in range, and encodes to the same message."""
    try:
        message = up.parse_upward(data)
    except WireError as fault:
        assert fault.what and len(fault.value) <= 80 and fault.limit
        return
    again = up.parse_upward(msgspec.json.encode(message))
    assert again == message
    for name, value in msgspec.structs.asdict(message).items():
        assert not isinstance(value, float) or math.isfinite(value), name
    if isinstance(message, up.Drive):
        assert -1.0 <= message.throttle <= 1.0 and -1.0 <= message.steer <= 1.0
    assert json.loads(data)["kind"] == type(message).__struct_config__.tag


def hub(data: bytes) -> None:
    """Lines of messages, by two visitors in turn: a visitor without the right to drive moves
    nothing."""
    house = House()
    driver = house.visitor("Ann")
    eve, knows = house.visitor("Eve", drive=False, address="10.0.0.66"), False
    for number, line in enumerate(data.split(b"\n")[:60]):
        visitor = eve if number % 2 else driver
        house.now_s += line[0] / 1000 if line else 0.3
        before = house.duties
        try:
            message = up.parse_upward(line)
            knows |= visitor is eve and getattr(message, "code", "") in SECRETS
            visitor.say(message)
        except (WireError, SessionClosed):
            continue
        house.control.step()
        if visitor is eve and any(before) != any(house.duties):
            assert knows or not any(house.duties), "a watcher moved the car"
        assert all(-1.0 <= duty <= 1.0 for duty in house.duties)
        house.hub.broadcast()
    assert knows or not eve.session.rights.drive


def wheels(data: bytes) -> None:
    """The socket to `wheels`, in both directions, and the decisions of its lease."""
    for size, parse, pack in (
        (SETPOINT.size, parse_setpoint, pack_setpoint),
        (ANSWER.size, parse_answer, pack_answer),
    ):
        try:
            assert parse(pack(parse(data[:size]))) == parse(data[:size])  # type: ignore
        except WireError as fault:
            assert fault.what and fault.limit
    lease = Lease((0.4, 0.4))
    packets = [data[at : at + 32] for at in range(0, len(data), 32)]
    for packet in packets:
        taken = lease.take([packet], NOW_NS)
        assert taken.answers or taken.setpoint is not None
        if taken.setpoint is not None:
            assert all(abs(duty) <= 0.4 + 1e-6 for duty in taken.setpoint.duties)
            assert NOW_NS < taken.setpoint.deadline_ns <= NOW_NS + AHEAD_MAX_NS
            assert not (lease.zero_first and any(taken.setpoint.duties))
            lease.applied(taken.setpoint, NOW_NS)
    _wheels_car(packets[:40])


def _wheels_car(packets: list[bytes]) -> None:
    """Send the packets to a driving car, as they are and with a deadline ahead of its clock.
    After 300 ms of silence no pin is on."""
    car = Car().driving()
    for number, packet in enumerate(packets):
        if number % 2:
            with suppress(WireError):
                setpoint = parse_setpoint(packet)
                ahead_ns = setpoint.deadline_ns % (2 * AHEAD_MAX_NS)
                packet = pack_setpoint(setpoint._replace(deadline_ns=car.now_ns + ahead_ns))
        assert car.send(packet)
        car.wait(packet[4] % 32 if len(packet) > 4 else 0)
    car.wait(300)
    assert not any(car.pins.duty(gpio) for gpio in PINS), "it drives on in silence"


def _units(splitter: Splitter, parts: list[bytes]) -> tuple[list[AccessUnit], bool]:
    units: list[AccessUnit] = []
    for part in parts:
        try:
            units += splitter.feed(part, NOW_US)
        except WireError as fault:
            assert fault.what and fault.limit
            return units, True
    return units, False


def records(data: bytes) -> None:
    """A framed camera: the same units result, however its records are cut."""
    whole, refused = _units(RecordSplitter(), [data])
    cut, refused_cut = _units(RecordSplitter(), pieces(data))
    assert refused == refused_cut
    # A single chunk that turns bad is dropped completely; piece by piece, its first units are kept.
    assert refused or whole == cut
    assert all(unit.capture_us <= NOW_US and unit.data for unit in cut)
    for unit in cut:
        again, _ = _units(RecordSplitter(), [pack_record(unit.key, unit.capture_us, unit.data)])
        assert [one.data for one in again] == [unit.data]
    head = data[:20]
    try:
        header, unit_data = parse_video(head + data[20:])
    except WireError as fault:
        assert fault.what
        return
    packed = pack_video(header.key, header.sequence, header.capture_us, unit_data)
    assert parse_video(packed) == (header, unit_data)


def sound(data: bytes) -> None:
    """/ws/intercom: an accepted frame packs to the same bytes, and is played only if it is new."""
    queue = SpeakerQueue()
    for frame in (data, *(data[at : at + FRAME_BYTES] for at in range(0, len(data), FRAME_BYTES))):
        try:
            parsed = parse_sound(frame)
        except WireError as fault:
            assert fault.what and fault.limit
            continue
        assert pack_sound(parsed) == frame
        now_s = NOW_US / 1e6
        assert not queue.admits(parsed, now_s) or now_s - parsed.clock_us / 1e6 <= LATE_S


def annexb(data: bytes) -> None:
    """A plain camera: cuts do not matter, memory is bounded, key units are complete."""
    whole, cut = h264.AnnexB(most=2048), h264.AnnexB(most=2048)
    one = [*whole.feed(data), whole.flush()] if len(data) <= 2048 else []
    many = []
    for part in pieces(data):
        many += cut.feed(part)
        assert len(cut._buffer) <= 2048 + len(part)
    last = cut.flush()
    if len(data) <= 2048:
        assert [*many, last] == one
    for unit in [*many, *([last] if last else [])]:
        assert h264.START_CODE in unit
        kinds = h264.nal_types(unit)
        assert h264.SLICES & set(kinds)
        if h264.is_key(unit):  # at an IDR, or at a recovery point with plain slices
            first = next(at for at, kind in enumerate(kinds) if kind in h264.SLICES)
            assert {h264.SPS, h264.PPS} <= set(kinds[:first])
    splitter = AnnexBSplitter()
    units, refused = _units(splitter, pieces(data))
    assert not refused
    for access_unit in [*units, *splitter.idle()]:
        assert access_unit.key == h264.is_key(access_unit.data)


def camera_commands(data: bytes) -> None:
    """Commands from `run` to a camera: a known line is a wish, an unknown one is reported by
    name."""
    whole, cut = CameraControl(), CameraControl()
    ignored = whole.feed(data)
    ignored_cut = [line for part in pieces(data) for line in cut.feed(part)]
    if all(len(line) < 200 for line in data.split(b"\n")):
        assert ignored == ignored_cut
        assert (whole.key, whole.bitrate) == (cut.key, cut.bitrate)
    assert all(line.startswith("ignored: ") and len(line) < 400 for line in ignored)
    bitrate = whole.bitrate
    assert bitrate is None or BITRATES[0] <= bitrate <= BITRATES[1]
    assert len(cut._rest) <= 200


def profile(data: bytes) -> None:
    """TOML: a profile within bounds that survives rewriting unchanged, or an error with the
    reason."""
    try:
        raw = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return
    try:
        parsed = profiles.parse(raw)
    except ConfigError as fault:
        assert str(fault)
        return
    assert profiles.parse(msgspec.to_builtins(parsed)) == parsed
    pins = parsed.stop_pins()
    assert len(set(pins)) == len(pins) and len(parsed.motors.pair) == 2
    stopped = {*pins, *(gpio for gpio, *_ in parsed.stop_pwm())}
    assert stopped >= set(parsed.motor_pins()), "nothing would stop a pin"
    assert stopped or parsed.stop_chips(), "nothing would stop it"
    assert 0.1 <= parsed.gate.silence_s <= 0.25 and parsed.gate.stale_s <= 0.2
    assert parsed.gate.late_s <= 0.4
    assert all(0 <= gpio <= 27 for gpio in pins)


def names(data: bytes) -> None:
    """Host and Origin: only addresses and our own names are let in."""
    host, _, origin = data.decode("latin-1").partition("\n")
    if addresses.host_allowed(host, "Plague", ["car.lan"]):
        name = re.sub(r":\d{1,5}$", "", host.lower())
        if name not in ("localhost", "plague", "plague.local", "car.lan"):
            bare = name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name
            ipaddress.ip_address(bare)
    if addresses.origin_allowed(origin, host):
        assert origin.lower().endswith(f"://{host.lower()}") and host
        assert origin.lower().startswith(("http:", "https:"))
    addresses.is_loopback(host)
    addresses.network_of(host)


def recording(data: bytes) -> None:
    """A recording: every message read has a valid CRC, damage is reported, and a clean copy has
    the same content."""
    try:
        made = Recording(BytesSource(data))
    except RecordingError as fault:
        assert str(fault)
        return
    found = list(made.messages())
    assert sum(made.counts.values()) == len(found)
    for one in made.damage:
        assert 0 <= one.at and one.length > 0 and one.at + one.length <= len(data)
        assert one.reason
    for span in made.chunks:
        assert 0 < span.at and span.at + span.length <= len(data)
        if span.loose:
            continue
        chunk = take_chunk(data[span.at + 9 : span.at + span.length])
        if not chunk.compression:
            assert zlib.crc32(chunk.records) == chunk.crc
    for message in found:
        try:
            again = codec.encode(codec.decode(message.topic, message.data))
            assert codec.encode(codec.decode(message.topic, again)) == again
        except FormatError as fault:
            text = str(fault)  # a topic that a stranger wrote is quoted
            assert message.topic in text or repr(message.topic) in text
    if made.chunks:
        clean = Recording(BytesSource(b"".join(rewritten(made))))
        assert clean.whole and list(clean.messages()) == found


PARSERS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        drive_up,
        hub,
        wheels,
        records,
        sound,
        annexb,
        camera_commands,
        profile,
        names,
        recording,
        buttons,
        pigpiod,
        pipe,
    )
}
