"""Seeded fuzzers of the car's servers: `python -m tests.e2e.hostile.fuzzers NAME PORT S`.

Each round is a connection: a request, an upgrade, a request over TLS, or a hello and ten messages.
Some are mutated in their text and some in their frame: valid frames reach the handlers, broken ones
the parsers. `estop` is left out: any client may send it, and a driver would notice.
"""

import contextlib
import os
import random
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable

from testkit.network.attacks import Attack, frame, hello, plug, request, until

SEED, MESSAGES = 1, 10
ROUNDS, LATE_S = 50, 60.0
"""Least number of rounds, however slow the machine, and the extra time for them."""
ANSWER_S, CLOSED_S = 0.05, 0.1
"""Time-outs for an answer to mutated bytes, and for the end after a close. Unmutated bytes have
the time-out of their plug."""
CLOSE = frame(b"\x03\xe8", 8)
DRIVE, VIDEO, BUTTONS = "/ws/drive", "/ws/video?id=fuzzer-01", "/ws/buttons"
FUZZER = hello("fuzzer-01")
REQUESTS = (
    *(request(path) for path in ("/", DRIVE, VIDEO, BUTTONS)),
    *(
        request(path, "")
        for path in (
            "/api/status",
            "/api/ping",
            "/api/recordings",
            "/seat/link/link.js",
            "/api/recordings/a.mcap/units?from=0&seconds=1",
            "/metrics",
            "/api/recordings/a.mcap/table?points=9",
            "/healthz",
        )
    ),
    request("/..%2f..%2fetc/passwd", "Origin: x\r\n"),
    request("/api/recordings/a.mcap", "Range: bytes=0-9,20-\r\n"),
    b"POST /api/recordings/unlock HTTP/1.1\r\nHost: localhost\r\n"
    b"X-Drive-Code: 123456\r\nContent-Length: 2\r\n\r\n{}",
)
SAYS: dict[str, tuple[bytes, ...]] = {
    DRIVE: (
        b'{"kind":"drive","seq":1,"t":1.5,"throttle":1,"steer":-0.5}',
        b'{"kind":"ping","seq":1,"t":1}',
        b'{"kind":"take"}',
        b'{"kind":"release"}',
        b'{"kind":"resume"}',
        b'{"kind":"unlock","code":"123456"}',
        b'{"kind":"limit","throttle":0.5}',
        b'{"kind":"guard","mode":"off"}',
        b'{"kind":"lights","head":true}',
        b'{"kind":"record","on":false}',
        b'{"kind":"keep"}',
        b'{"kind":"mark","text":"\\u00e9\\ud83d\\ude00"}',
        b'{"kind":"report","path":"mse","picture_ms":1.5,"link_ms":null,"fps":30}',
    ),
    VIDEO: (b"key", b"key", b"keys", b""),
    BUTTONS: (
        b'{"kind":"hello","v":1}',
        b'{"kind":"hold","held":5}',
        b'{"kind":"hold","held":0}',
        b'{"kind":"choose","mode":"game"}',
        b'{"kind":"choose","mode":"free"}',
    ),
}
TAILS = (b" ", b"\t", b",x", b"\x00", b"\xff", b"\r", b"x" * 9000)
PASS = b"fpvcar-pass=%032x.%d.%064x" % (1, 9_999_999_999, 2)
HEADERS = (
    b"Cookie: " + PASS,
    b"Cookie: __Host-" + PASS,
    b"Origin: http://localhost",
    b"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=9",
    b"Sec-WebSocket-Protocol: fpvcar, mqtt",
    b"Content-Length: 9",
    b"Expect: 100-continue",
    b"Transfer-Encoding: chunked",
    b"Upgrade: h2c",
)


def tls_client(newest: ssl.TLSVersion) -> ssl.SSLContext:
    """Return the context of a client that trusts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = newest
    return context


TLS_CLIENTS = [tls_client(one) for one in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]
TLS_STEPS = 6
"""Single step more than a request takes over TLS 1.2, where answers sometimes come in pieces."""
"""Steps of a request over TLS 1.2, plus one, as answers sometimes come in pieces."""


def mutated(dice: random.Random, data: bytes) -> bytes:
    """Make up to three cuts, each of up to two bytes, with up to three in their place."""
    made = bytearray(data)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(made) + 1)
        made[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(4))
    return bytes(made)


def ask(made: socket.socket, dice: random.Random) -> str:
    """Send one HTTP request, perhaps mutated."""
    whole = dice.choice(REQUESTS)
    data = mutated(dice, whole)
    if data != whole:
        made.settimeout(ANSWER_S)
    made.sendall(data)
    return made.recv(12).decode("latin-1")[9:]


def talk(made: socket.socket, dice: random.Random, path: str) -> str:
    """Send messages, and a close that lets the car read them all before it hangs up."""
    frames, clumsy = [], dice.choice((0.3, 0.3, 0.3, 1.0))
    for _ in range(MESSAGES):
        text = dice.choice(SAYS[path])
        if dice.random() < clumsy:
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


def handshake(made: socket.socket, dice: random.Random) -> str:
    """Send an upgrade whose lines are lost, doubled, swapped, mutated, or cut short."""
    whole = request(dice.choice((DRIVE, VIDEO, BUTTONS)))
    lines = whole.split(b"\r\n")[:-2]
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(lines))
        one = lines[at]
        lines[at : at + 1] = dice.choice(
            (
                [],
                [one, one],
                [mutated(dice, one)],
                [one + dice.choice(TAILS)],
                [dice.choice(lines), one],
                [one, mutated(dice, dice.choice(HEADERS))],
            )
        )
    data = b"\r\n".join(lines) + b"\r\n\r\n"
    if dice.random() < 0.2:
        data = data[: dice.randrange(len(data))]
    if data != whole:
        made.settimeout(ANSWER_S)
    half = len(data) // 2
    for piece in (data[:half], data[half:]):
        made.sendall(piece)
    return made.recv(12).decode("latin-1")[9:]


def harmed(dice: random.Random, record: bytes) -> bytes:
    """Damage a client's record of one TLS step in its type, length, body or end."""
    kind = dice.randrange(6)
    if kind == 0:
        return mutated(dice, record)
    if kind == 1:
        return dice.randbytes(1) + record[1:]
    if kind == 2:
        return record[:3] + dice.randbytes(2) + record[5:]
    if kind == 3:
        return record[: dice.randrange(len(record) + 1)]
    return record * 2 if kind == 4 else record + dice.randbytes(dice.randrange(20_000))


def tls_records(made: socket.socket, dice: random.Random) -> str:
    """Send a request over TLS, half the time with one damaged step."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = dice.choice(TLS_CLIENTS).wrap_bio(incoming, outgoing)
    harmed_step = dice.randrange(2 * TLS_STEPS)
    if harmed_step < TLS_STEPS:
        made.settimeout(ANSWER_S)
    asked = False
    for step in range(TLS_STEPS):
        try:
            if not asked:
                peer.do_handshake()
                peer.write(request("/api/ping", ""))
                asked = True
            return peer.read(12).decode("latin-1")[9:]
        except ssl.SSLWantReadError:
            record = outgoing.read()
        except ssl.SSLError as fault:
            return f"TLS: {fault.reason}"
        made.sendall(harmed(dice, record) if step == harmed_step else record)
        data = made.recv(65536)
        if not data:
            return "closed"
        incoming.write(data)
    return "unfinished"


def enough(counts: Counter[str]) -> bool:
    """Return whether there were many rounds, and a fifth as many reached a handler."""
    through = sum(n for said, n in counts.items() if said[:3] in ("101", "200"))
    return counts.total() > ROUNDS and through > ROUNDS / 5


def fuzzer(*rounds: Callable[[socket.socket, random.Random], str]) -> Attack:
    """Run the rounds in turn, each on its own connection; count the answers."""

    def attack(port: int, seconds: float) -> Counter[str]:
        dice, counts = random.Random(SEED), Counter[str]()
        end_s = time.monotonic() + seconds
        for number in until(seconds + LATE_S):
            if time.monotonic() > end_s and enough(counts):
                break
            said = "silent"
            with contextlib.suppress(OSError), plug(port, 66 + number % 4) as made:
                said = rounds[number % len(rounds)](made, dice) or "closed"
            counts[said] += 1
        return counts

    return attack


def on(path: str) -> Callable[[socket.socket, random.Random], str]:
    """Return a round that sends messages to a path."""
    return lambda made, dice: talk(made, dice, path)


EACH: dict[str, Attack] = {
    "http": fuzzer(ask),
    "drive": fuzzer(on(DRIVE)),
    "video": fuzzer(on(VIDEO)),
    "buttons": fuzzer(on(BUTTONS)),
    "handshake": fuzzer(handshake),
}
TLS = "tls"
"""The https port, open only on a car on the LAN."""
FUZZERS = {
    TLS: fuzzer(tls_records),
    "fuzz": fuzzer(ask, on(DRIVE), on(VIDEO), on(BUTTONS), handshake),
    **EACH,
}


if __name__ == "__main__":
    os.nice(10)  # leave the core to the car: the attacker would be another machine
    name, port, seconds = sys.argv[1:]
    print(dict(FUZZERS[name](int(port), float(seconds))), flush=True)
