"""Real processes under a seeded fuzzer: alive, silent in the log, memory flat.

The sockets of `run` are in tests/e2e/hostile/test_fuzz.py. Fuzzing beside a driver is in
tests/e2e/hostile/test_hostile.py.
"""

import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.memory import resident_mb
from testkit.pins.pigpiod import emulator

from fpvbench.pigpiod.protocol import REQUEST, Cmd
from fpvcar.video.access_unit_records import RecordSplitter

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

SHORT_S, LONG_S = 3.0, 120.0
ENOUGH = 30
"""Units after which a camera has shown that it goes on."""
FULL_S = 5.0
"""Time after which the process holds its permitted maximum."""
GROWTH_MB = 30.0
"""Memory of the permitted scripts, waves and handles; after that the process is full."""


def requests(dice: random.Random) -> Iterator[bytes]:
    """Yield existing commands, and similar ones."""
    while True:
        ext = dice.choice((b"", b"w 17 1 mils 1", dice.randbytes(dice.randrange(60))))
        cmd = dice.choice(tuple(Cmd)) if dice.random() < 0.9 else dice.randrange(2**32)
        p1, p2 = (dice.choice((0, 1, 17, 31, dice.randrange(2**32))) for _ in "12")
        size = len(ext) if dice.random() < 0.98 else dice.randrange(2**32)
        yield REQUEST.pack(cmd, p1, p2, size) + ext


def answered(port: int) -> bool:
    """Return whether a new client gets the version while other clients send garbage."""
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as peer:
        peer.sendall(REQUEST.pack(Cmd.PIGPV, 0, 0, 0))
        return peer.recv(16) == struct.pack("<IIIi", Cmd.PIGPV, 0, 0, 79)


def test_emulator_survives_fuzzed_commands(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(1)
    stream, sent, clients = requests(dice), 0, 0
    with emulator(tmp_path) as running:
        pid, early_mb = running.process.pid, 0.0
        begin_s = time.monotonic()
        seconds = LONG_S if soaking else SHORT_S
        end_s = begin_s + seconds
        while time.monotonic() < end_s:
            clients += 1
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", running.port), 5.0) as peer,
            ):
                peer.settimeout(0.02)
                for _ in range(dice.randrange(1, 200)):
                    peer.sendall(next(stream))
                    sent += 1
                peer.recv(65536)
            if clients % 20 == 0:
                assert answered(running.port)
            if not early_mb and time.monotonic() - begin_s > min(FULL_S, seconds / 2):
                early_mb = resident_mb(pid)
        assert running.process.poll() is None and answered(running.port)
        late_mb = resident_mb(pid)
        fds = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        assert running.soc.pin[1].mode == 0, "a pin that no client may have"
    with capsys.disabled():
        print(
            f"\nemulator: {sent} commands of {clients} clients, {early_mb:.1f} -> "
            f"{late_mb:.1f} MB, {fds} descriptors",
            end="",
        )
    assert late_mb < early_mb + GROWTH_MB and fds < 60


def test_camera_survives_fuzzed_commands(soaking: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """For any input on stdin, stdout has complete records."""
    dice, records, units = random.Random(1), RecordSplitter(), 0
    argv = [sys.executable, "-m", "fpvbench.camera.process", "--source", "strip"]
    camera = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert camera.stdin and camera.stdout and camera.stderr
    said: list[bytes] = []
    stderr = camera.stderr
    listener = threading.Thread(target=lambda: said.extend(stderr))
    listener.start()
    words = (b"key\n", b"bitrate 500000\n", b"bitrate 1\n", b"bitrate 1" + b"0" * 5000)
    end_s = time.monotonic() + (LONG_S if soaking else SHORT_S)
    while time.monotonic() < end_s or units <= ENOUGH:
        word = dice.choice(words)
        junk = dice.randbytes(dice.randrange(300)) if dice.random() < 0.3 else word
        camera.stdin.write(junk)
        camera.stdin.flush()
        units += len(
            records.feed(os.read(camera.stdout.fileno(), 65536), time.monotonic_ns() // 1000)
        )
    assert camera.poll() is None
    camera.stdin.close()
    camera.stdout.close()
    assert camera.wait(10) == 0
    listener.join()
    camera.stderr.close()
    with capsys.disabled():
        print(f"\ncamera: {units} units, {len(said)} lines refused", end="")
    assert not any(b"Traceback" in line for line in said)
