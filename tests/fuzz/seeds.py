"""Inputs that the fuzzers begin with, and inputs that once broke something."""

import contextlib
import json
from pathlib import Path

from testkit.recorder.recording import small_files

from fpvbench.pigpiod.protocol import REQUEST, CommandError, Request
from fpvbench.pigpiod.text import command_text
from fpvcar.runtime import paths
from fpvcar.wheels.controller import AHEAD_MAX_NS
from fpvcar.wire.camera import pack_record
from fpvcar.wire.intercom import Sound, pack_sound
from fpvcar.wire.wheels import Setpoint, pack_setpoint

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
"""Waves, bit banging, SPI and filters, as a user would type them."""


def socket(lines: str) -> bytes:
    """Return the same commands in the format of the emulator's port."""
    found: list[Request] = []
    for line in lines.split("\n"):
        with contextlib.suppress(CommandError):
            found.extend(command_text.commands(line))
    return b"".join(REQUEST.pack(one.cmd, one.p1, one.p2, len(one.ext)) + one.ext for one in found)


def seeds(name: str) -> list[bytes]:
    """Return inputs to begin with: the golden vectors, good and refused ones."""
    vectors = Path(__file__).parents[1] / "vectors"

    def read(file: str, *keys: str) -> list[dict[str, str]]:
        found = json.loads((vectors / file).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
        return [*found["good"], *found["refused"]]

    def binary(*where: str) -> list[bytes]:
        return [bytes.fromhex(one["hex"]) for one in read(*where) if one.get("hex")]

    def kinds(file: str) -> list[bytes]:
        """Return a good message of each kind: a car or panel per input is slow."""
        good = json.loads((vectors / file).read_text(encoding="utf-8"))["good"]
        return list(
            {json.loads(one["text"])["kind"]: one["text"].encode() for one in good}.values()
        )

    texts = [one["text"].encode() for one in read("drive_up.json") if "text" in one]
    wishes, pushes = kinds("drive_up.json"), kinds("buttons_up.json")
    nal = b"\0\0\0\1"
    key = nal + b"\x67\x42\xe0\x1e\x88" + nal + b"\x68\xce\x3c" + nal + b"\x65\xb8\4"
    frames = key + nal + b"\x41\x9a\1" + nal + b"\x09\x10" + key + nal + b"\x01\xc0"
    command = (b"%c\0\0\0\x11\0\0\0%c\0\0\0\0\0\0\0" % (n % 119, n % 7) for n in range(130))
    script = b"tag 1 w p0 1 mils 20 dcr p1 jnz 1 halt"
    drive = b"".join(
        pack_setpoint(Setpoint(seq, AHEAD_MAX_NS // 2, (duty, -duty)))
        for seq, duty in enumerate((0.3, 0.0, 0.3, 0.3, 0.0, -0.3, 0.3, 0.3))
    )
    run = b"\x26\0\0\0" + bytes(8) + len(script).to_bytes(4, "little") + script
    return {
        "drive_up": texts,
        "hub": [b"\n".join(wishes), b"\n\n".join(wishes), *wishes],
        "buttons": [
            b"\n".join(pushes),
            b"\n\0\x82a\n".join(pushes),
            *pushes,
            b"\0\x80\n\0\0\xff\n" * 9,
        ],
        "wheels": [one for half in ("setpoint", "answer") for one in binary("wheels.json", half)]
        + [drive],
        "records": [
            *binary("camera_record.json"),
            *binary("video.json"),
            pack_record(True, 5, key) * 3,
        ],
        "sound": [
            pack_sound(Sound(clock_us, bytes(range(160)) * 4)) for clock_us in (0, 2**62, 2**64 - 1)
        ],
        "annexb": [frames, key * 4, frames[7:]],
        "camera_commands": [b"key\n", b"bitrate 500000\nkey\n", b"bitrate 9\n"],
        "profile": [file.read_bytes() for file in paths.HARDWARE.glob("*.toml")],
        "names": [
            b"localhost:80\nhttp://localhost:80",
            b"[::1]\nhttps://[::1]",
            b"10.0.0.1\nnull",
            b"plague.local\nhttp://evil",
        ],
        "recording": small_files(),
        "pigpiod": [*command, run + b"\x28\0\0\0" + bytes(12), *map(socket, PIPE_LINES)],
        "pipe": [line.encode() for line in PIPE_LINES],
    }[name]


def crashes(name: str) -> list[Path]:
    """Return inputs that once broke an oracle and are now regression tests."""
    return sorted((Path(__file__).parent / "crashes").glob(f"{name}-*"))
