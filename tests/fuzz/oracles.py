"""One function a parser: any bytes in; an assertion is what must hold for all of them.

Not only "it does not crash": what is taken is in range and comes back the same, what
is refused says why, and nothing depends on how the bytes were cut.
"""

import contextlib
import ipaddress
import json
import math
import random
import re
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from fpvcar import paths
from fpvcar.bench.chips.mcp3008 import Mcp3008, fixed_inputs
from fpvcar.bench.pigpiod import command_text
from fpvcar.bench.pigpiod.protocol import (
    REQUEST,
    Cmd,
    Outcome,
    Oversize,
    Parser,
    Request,
    Wait,
    encode_reply,
)
from fpvcar.config import ConfigError, profiles
from fpvcar.mcap.chunks import BytesSource
from fpvcar.mcap.parsing import take_chunk
from fpvcar.recordings import messages
from fpvcar.recordings.messages import FormatError
from fpvcar.recordings.reader import ReadError, Recording
from fpvcar.recordings.recover import rewritten
from fpvcar.server import access
from fpvcar.server.session import Closing
from fpvcar.video import h264
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.process import BITRATES
from fpvcar.video.process import Control as CameraControl
from fpvcar.video.units import Plain, Records, Splitter
from fpvcar.wheels.lease import AHEAD_MAX_NS, Lease
from fpvcar.wire import up
from fpvcar.wire.camera import pack_record
from fpvcar.wire.errors import WireError
from fpvcar.wire.video import pack_video, parse_video
from fpvcar.wire.wheels import (
    ANSWER,
    SETPOINT,
    Setpoint,
    pack_answer,
    pack_setpoint,
    parse_answer,
    parse_setpoint,
)
from tests.fuzz.panel import buttons
from tests.rigs.hub import CODES, House
from tests.rigs.pigpiod import Core, make_core
from tests.rigs.recording import small_files
from tests.rigs.wheels_car import PINS, Car

NOW_NS = 10**12
NOW_US = 2**62
SECRETS = (CODES.drive, CODES.grown_up)


def pieces(data: bytes) -> list[bytes]:
    """The same bytes, cut by themselves: every input has cuts of its own."""
    dice, parts = random.Random(data), []
    while data:
        size = dice.choice((1, 2, 3, 7, 16, 64, 4096))
        parts.append(data[:size])
        data = data[size:]
    return parts


def drive_up(data: bytes) -> None:
    """/ws/drive: what is taken is finite, in range, and encodes to the same."""
    try:
        message = up.parse_upward(data)
    except WireError as fault:
        assert fault.what and len(fault.value) <= 80 and fault.limit
        return
    if message is None:
        return
    again = up.parse_upward(msgspec.json.encode(message))
    assert again == message
    for name, value in msgspec.structs.asdict(message).items():
        assert not isinstance(value, float) or math.isfinite(value), name
    if isinstance(message, up.Drive):
        assert -1.0 <= message.throttle <= 1.0 and -1.0 <= message.steer <= 1.0
    assert json.loads(data)["kind"] == type(message).__struct_config__.tag


def hub(data: bytes) -> None:
    """Lines of messages, by two visitors in turn: nothing moves for who may not."""
    house = House()
    driver = house.visitor("Ann")
    eve, knows = house.visitor("Eve", drive=False, address="10.0.0.66"), False
    for number, line in enumerate(data.split(b"\n")[:60]):
        visitor = eve if number % 2 else driver
        house.now_s += line[0] / 1000 if line else 0.3
        before = house.duties
        try:
            message = up.parse_upward(line)
            if message is not None:
                knows |= visitor is eve and getattr(message, "code", "") in SECRETS
                visitor.say(message)
        except (WireError, Closing):
            continue
        house.control.step()
        if visitor is eve and any(before) != any(house.duties):
            assert knows or not any(house.duties), "a watcher moved the car"
        assert all(-1.0 <= duty <= 1.0 for duty in house.duties)
        house.hub.broadcast()
    assert knows or not eve.session.rights.drive


def wheels(data: bytes) -> None:
    """The socket to `wheels`, both ways, and what its lease makes of it."""
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
    """A car that drives gets them, as they are and with a deadline ahead of its clock:
    after 300 ms of silence no pin is on."""
    car = Car().driving()
    for number, packet in enumerate(packets):
        if number % 2:
            with suppress(WireError):
                setpoint = parse_setpoint(packet)
                ahead_ns = setpoint.deadline_ns % (2 * AHEAD_MAX_NS)
                packet = pack_setpoint(
                    setpoint._replace(deadline_ns=car.now_ns + ahead_ns)
                )
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
    """A framed camera: however its records are cut, the same units come of them."""
    whole, refused = _units(Records(), [data])
    cut, refused_cut = _units(Records(), pieces(data))
    assert refused == refused_cut
    # Of one chunk that turns bad nothing is kept; piece by piece the first ones are.
    assert refused or whole == cut
    assert all(unit.capture_us <= NOW_US and unit.data for unit in cut)
    for unit in cut:
        again, _ = _units(Records(), [pack_record(*unit)])
        assert [one.data for one in again] == [unit.data]
    head = data[:20]
    try:
        header, unit_data = parse_video(head + data[20:])
    except WireError as fault:
        assert fault.what
        return
    packed = pack_video(header.key, header.sequence, header.capture_us, unit_data)
    assert parse_video(packed) == (header, unit_data)


def annexb(data: bytes) -> None:
    """A plain camera: cuts do not matter, memory is bounded, key units are whole."""
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
        if h264.is_key(unit):
            assert {h264.SPS, h264.PPS} <= set(kinds[: kinds.index(h264.IDR)])
    splitter = Plain()
    units, refused = _units(splitter, pieces(data))
    assert not refused
    for access_unit in [*units, *splitter.idle()]:
        assert access_unit.key == h264.is_key(access_unit.data)


def camera_commands(data: bytes) -> None:
    """What `run` writes to a camera: a known line is a wish, another is named."""
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
    """TOML: a profile in bounds that is the same when written again, or why not."""
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
    assert len(pins) >= 3 or parsed.stop_chips(), "nothing would stop it"
    assert 0.1 <= parsed.gate.silence_s <= 0.25 and parsed.gate.stale_s <= 0.2
    assert parsed.gate.late_s <= 0.4
    assert all(0 <= gpio <= 27 for gpio in pins)


def names(data: bytes) -> None:
    """Host and Origin: nothing but addresses and our own names is let in."""
    host, _, origin = data.decode("latin-1").partition("\n")
    if access.host_allowed(host, "Plague", ["car.lan"]):
        name = re.sub(r":\d{1,5}$", "", host.lower())
        if name not in ("localhost", "plague", "plague.local", "car.lan"):
            bare = name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name
            ipaddress.ip_address(bare)
    if access.origin_allowed(origin, host):
        assert origin.lower().endswith(f"://{host.lower()}") and host
        assert origin.lower().startswith(("http:", "https:"))
    access.is_loopback(host)
    access.network_of(host)


_folder = tempfile.TemporaryDirectory()


def pigpiod(data: bytes) -> None:
    """The emulator's port: cuts do not matter, every request has a whole answer."""
    seen: list[list[Request | str]] = []
    for parts in ([data], pieces(data)):
        parser, found = Parser(), list[Request | str]()
        try:
            for part in parts:
                parser.feed(part)
                found += parser.requests()
        except Oversize as fault:
            found = [str(fault)]
        seen.append(found)
    assert seen[0] == seen[1]
    core = _daemon()
    for request in seen[0][:40]:
        if isinstance(request, str):
            assert "at most" in request
            break
        outcome = _executed(core, request)
        if not isinstance(outcome, Wait):
            reply = encode_reply(request, outcome)
            assert len(reply) == 16 + (
                len(outcome) if isinstance(outcome, bytes) else 0
            )
    _bounds_hold(core)


def pipe(data: bytes) -> None:
    """The emulator's command pipe: every command of a line has its answer."""
    core = _daemon()
    for line in data.decode("latin-1").split("\n")[:20]:
        try:
            for request in command_text.commands(line):
                outcome = _executed(core, request)
                if not isinstance(outcome, Wait):
                    said = command_text.answer(request, outcome)
                    assert said.endswith("\n") or request.cmd == Cmd.BSCX
        except command_text.BadCommand:
            assert command_text.refusal() == "-29\n"
    _bounds_hold(core)


def _daemon() -> Core:
    """An emulator with something at its pins."""
    adc = Mcp3008(fixed_inputs([0.5]))
    return make_core(Path(_folder.name), wires=[(22, 27), (9, 10)], spi={7: adc})


def _executed(core: Core, request: Request) -> Outcome:
    """The outcome of a request, after a few waits and 2 ms more."""
    outcome = core.start(request.cmd, request.p1, request.p2, request.ext)
    for _ in range(3):
        if isinstance(outcome, Wait):
            core.run(max(0, min(outcome.until_us - core.now_us, 100_000)))
            outcome = outcome.finish(outcome.until_us)
    core.run(2000)
    return outcome


def _bounds_hold(core: Core) -> None:
    for gpio in (0, 1, *range(28, 54)):
        assert core.soc.pin[gpio].mode == 0, "a pin that no client may have"


def recording(data: bytes) -> None:
    """A recording: nothing comes out that its CRC does not vouch for, what is damaged
    is said, and a clean copy holds the same."""
    try:
        made = Recording(BytesSource(data))
    except ReadError as fault:
        assert str(fault)
        return
    found = list(made.messages())
    assert sum(made.counts.values()) == len(found)
    for one in made.damage:
        assert 0 <= one.at and one.length > 0 and one.at + one.length <= len(data)
        assert one.what
    for span in made.chunks:
        assert 0 < span.at and span.at + span.length <= len(data)
        chunk = take_chunk(data[span.at + 9 : span.at + span.length])
        if not chunk.compression:
            assert zlib.crc32(chunk.records) == chunk.crc
    for message in found:
        try:
            again = messages.encode(messages.decode(message.topic, message.data))
            assert messages.encode(messages.decode(message.topic, again)) == again
        except FormatError as fault:
            text = str(fault)  # a topic that a stranger wrote is quoted
            assert message.topic in text or repr(message.topic) in text
    if made.chunks:
        clean = Recording(BytesSource(b"".join(rewritten(made))))
        assert clean.whole and list(clean.messages()) == found


PARSERS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        drive_up, hub, wheels, records, annexb, camera_commands, profile, names,
        recording, buttons,
        pigpiod, pipe,
    )
}  # fmt: skip


PIPE_LINES = (
    "w 4 1 wvag 16 0 50 0 16 70 wvcre wvtx 0 wvtat wvsm 0 wvbsy wvhlt wvdel 0",
    "wvas 27 9600 8 2 0 65 66 wvcap 50 wvtxr 0 wvcha 255 0 0 255 1 3 0 255 2 9 0 0",
    "wvag 8 0 1 wvcre wvag 0 8 2 wvcre wvtxm 0 1 wvtxm 1 3 wvcha 255 0 0 1 255 3",
    "slro 22 4800 8 m 27 w wvas 27 4800 8 2 0 7 wvcre wvtx 0\nslr 22 9 slri 22 1",
    "bi2co 5 6 100000 pud 5 u bi2cz 5 4 83 2 7 1 50 3 0 bi2cc 5\nbi2co 5 6 50",
    "bspio 8 9 10 11 50000 3 bspix 8 1 2 255 bspic 8 spio 1 50000 0 spix 0 1 128 0",
    "fg 22 100 fn 22 100 200 wdog 22 5 trig 27 10 1\nhelp\nfrob\nprocp 0 bscx 773 1",
    "proc tag 0 wvbsy jnz 0 w 4 1 mils 5 jmp 0\nprocr 0 1 2\nprocp 0 procu 0 3 procd 0",
)
"""Waves, bit banging, SPI and filters, as somebody would type them."""


def socket(lines: str) -> bytes:
    """The same commands for the emulator's port."""
    found: list[Request] = []
    for line in lines.split("\n"):
        with contextlib.suppress(command_text.BadCommand):
            found.extend(command_text.commands(line))
    return b"".join(
        REQUEST.pack(one.cmd, one.p1, one.p2, len(one.ext)) + one.ext for one in found
    )


def seeds(name: str) -> list[bytes]:
    """Inputs to begin with: the golden vectors, good and refused ones."""
    vectors = Path(__file__).parents[1] / "vectors"

    def read(file: str, *keys: str) -> list[dict[str, str]]:
        found = json.loads((vectors / file).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
        return [*found["good"], *found["refused"]]

    def binary(*where: str) -> list[bytes]:
        return [bytes.fromhex(one["hex"]) for one in read(*where) if one.get("hex")]

    texts = [one["text"].encode() for one in read("drive_up.json") if "text" in one]
    pushes = [one["text"].encode() for one in read("buttons_up.json") if "text" in one]
    nal = b"\0\0\0\1"
    key = nal + b"\x67\x42\xe0\x1e\x88" + nal + b"\x68\xce\x3c" + nal + b"\x65\xb8\4"
    frames = key + nal + b"\x41\x9a\1" + nal + b"\x09\x10" + key + nal + b"\x01\xc0"
    command = (
        b"%c\0\0\0\x11\0\0\0%c\0\0\0\0\0\0\0" % (n % 119, n % 7) for n in range(130)
    )
    script = b"tag 1 w p0 1 mils 20 dcr p1 jnz 1 halt"
    drive = b"".join(
        pack_setpoint(Setpoint(seq, AHEAD_MAX_NS // 2, (duty, -duty)))
        for seq, duty in enumerate((0.3, 0.0, 0.3, 0.3, 0.0, -0.3, 0.3, 0.3))
    )
    run = b"\x26\0\0\0" + bytes(8) + len(script).to_bytes(4, "little") + script
    return {
        "drive_up": texts,
        "hub": [b"\n".join(texts), b"\n\n".join(texts), *texts],
        "buttons": [b"\n".join(pushes), b"\n\0\x82a\n".join(pushes),
                    *pushes, b"\0\x80\n\0\0\xff\n" * 9],
        "wheels": [one for half in ("setpoint", "answer")
                   for one in binary("wheels.json", half)] + [drive],
        "records": [*binary("camera_record.json"), *binary("video.json"),
                    pack_record(True, 5, key) * 3],
        "annexb": [frames, key * 4, frames[7:]],
        "camera_commands": [b"key\n", b"bitrate 500000\nkey\n", b"bitrate 9\n"],
        "profile": [file.read_bytes() for file in paths.HARDWARE.glob("*.toml")],
        "names": [b"localhost:80\nhttp://localhost:80", b"[::1]\nhttps://[::1]",
                  b"10.0.0.1\nnull", b"plague.local\nhttp://evil"],
        "recording": small_files(),
        "pigpiod": [*command, run + b"\x28\0\0\0" + bytes(12),
                    *map(socket, PIPE_LINES)],
        "pipe": [line.encode() for line in PIPE_LINES],
    }[name]  # fmt: skip


def crashes(name: str) -> list[Path]:
    """Inputs that once broke an oracle: now regression tests."""
    return sorted((Path(__file__).parent / "crashes").glob(f"{name}-*"))
