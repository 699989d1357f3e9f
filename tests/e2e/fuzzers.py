"""Seeded fuzzers of what the car serves: `python -m tests.e2e.fuzzers NAME PORT S`.

Each round is a connection: a request, or a hello and ten messages, of which some are
mutated in their text and some in their frame. What is said right reaches the handlers,
what is not the parsers. `estop` is left out: anybody may, and a driver would notice.
"""

import contextlib
import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable

from tests.e2e.hostile import Attack, frame, hello, plug, request, until

SEED, MESSAGES = 1, 10
ANSWER_S, CLOSED_S = 0.05, 0.1
"""So long an answer is waited for, and the end after a close."""
CLOSE = frame(b"\x03\xe8", 8)
DRIVE, VIDEO, BUTTONS = "/ws/drive", "/ws/video?id=fuzzer-01", "/ws/buttons"
FUZZER = hello("fuzzer-01")
REQUESTS = (
    *(request(path) for path in ("/", DRIVE, VIDEO, BUTTONS)),
    *(
        request(path, "")
        for path in ("/api/status", "/api/ping", "/api/recordings", "/seat/link.js",
                     "/api/recordings/a.mcap/units?from=0&seconds=1", "/metrics",
                     "/api/recordings/a.mcap/table?points=9", "/healthz")
    ),
    request("/..%2f..%2fetc/passwd", "Origin: x\r\n"),
    request("/api/recordings/a.mcap", "Range: bytes=0-9,20-\r\n"),
    b"POST /api/recordings/unlock HTTP/1.1\r\nHost: localhost\r\n"
    b"X-Drive-Code: 123456\r\nContent-Length: 2\r\n\r\n{}",
)  # fmt: skip
SAYS: dict[str, tuple[bytes, ...]] = {
    DRIVE: (
        b'{"kind":"drive","seq":1,"t":1.5,"throttle":1,"steer":-0.5}',
        b'{"kind":"ping","seq":1,"t":1}', b'{"kind":"take"}', b'{"kind":"release"}',
        b'{"kind":"resume"}', b'{"kind":"unlock","code":"123456"}',
        b'{"kind":"limit","throttle":0.5}', b'{"kind":"guard","mode":"off"}',
        b'{"kind":"lights","head":true}', b'{"kind":"horn","on":true}',
        b'{"kind":"record","on":false}', b'{"kind":"keep"}',
        b'{"kind":"mark","text":"\\u00e9\\ud83d\\ude00"}',
        b'{"kind":"report","path":"mse","picture_ms":1.5,"link_ms":null,"fps":30}',
    ),
    VIDEO: (b"key", b"key", b"keys", b""),
    BUTTONS: (
        b'{"kind":"hello","v":1}', b'{"kind":"hold","held":5}',
        b'{"kind":"hold","held":0}', b'{"kind":"choose","mode":"game"}',
        b'{"kind":"choose","mode":"free"}',
    ),
}  # fmt: skip


def mutated(dice: random.Random, data: bytes) -> bytes:
    """Up to three cuts, each of up to two bytes, with up to three in their place."""
    made = bytearray(data)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(made) + 1)
        made[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(4))
    return bytes(made)


def ask(made: socket.socket, dice: random.Random) -> str:
    """One request."""
    made.settimeout(ANSWER_S)
    made.sendall(mutated(dice, dice.choice(REQUESTS)))
    return made.recv(12).decode("latin-1")[9:]


def talk(made: socket.socket, dice: random.Random, path: str) -> str:
    """Messages, and a close that lets the car take them all before it hangs up."""
    frames = []
    for _ in range(MESSAGES):
        text = dice.choice(SAYS[path])
        if dice.random() < 0.3:
            text = mutated(dice, text)
        one = frame(text)
        frames.append(mutated(dice, one) if dice.random() < 0.1 else one)
    first = {DRIVE: FUZZER, BUTTONS: frame(SAYS[BUTTONS][0])}.get(path, b"")
    made.sendall(request(path) + first + b"".join(frames) + CLOSE)
    made.settimeout(CLOSED_S)
    said = made.recv(12).decode("latin-1")[9:]
    end_s = time.monotonic() + CLOSED_S
    while time.monotonic() < end_s:
        if not made.recv(65536):
            return said
    return f"{said}, open"


def fuzzer(*rounds: Callable[[socket.socket, random.Random], str]) -> Attack:
    """Sends the messages in turn, each on its own connection; counts the answers."""

    def attack(port: int, seconds: float) -> Counter[str]:
        dice, counts = random.Random(SEED), Counter[str]()
        for number in until(seconds):
            said = "silent"
            with contextlib.suppress(OSError), plug(port, 66 + number % 4) as made:
                said = rounds[number % len(rounds)](made, dice) or "closed"
            counts[said] += 1
        return counts

    return attack


def on(path: str) -> Callable[[socket.socket, random.Random], str]:
    """Talks there."""
    return lambda made, dice: talk(made, dice, path)


EACH: dict[str, Attack] = {
    "http": fuzzer(ask), "drive": fuzzer(on(DRIVE)), "video": fuzzer(on(VIDEO)),
    "buttons": fuzzer(on(BUTTONS)),
}  # fmt: skip
FUZZERS = {"fuzz": fuzzer(ask, on(DRIVE), on(VIDEO), on(BUTTONS)), **EACH}


if __name__ == "__main__":
    os.nice(10)  # it would be another machine's core
    name, port, seconds = sys.argv[1:]
    print(dict(FUZZERS[name](int(port), float(seconds))), flush=True)
