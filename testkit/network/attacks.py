"""Hostile clients, a process each: `python -m testkit.network.attacks NAME PORT S`.

Each attack lasts S seconds at full rate from addresses of 127.0.0.0/8 that are not the driver's,
and prints one line of counts. They break the protocols on purpose. fuzzers.py has more attacks.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
TEXT, BINARY, PING = 1, 2, 9
FIN = 0x80
ROUNDS_FULL = 20
Attack = Callable[[int, float], Counter[str]]


def plug(port: int, last: int = 66) -> socket.socket:
    """Open a TCP connection from 127.0.0.LAST."""
    made = socket.socket()
    made.settimeout(2.0)
    try:
        made.bind((f"127.0.0.{last}", 0))
        made.connect(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


def request(path: str, more: str = UPGRADE) -> bytes:
    """Return the head of a GET."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()


def frame(data: bytes, opcode: int = TEXT, flags: int = FIN, masked: bool = True) -> bytes:
    """Return one WebSocket frame; its mask is zero."""
    bit, size = 0x80 * masked, len(data)
    if size < 126:
        head = bytes([flags | opcode, bit | size])
    elif size < 65536:
        head = bytes([flags | opcode, bit | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([flags | opcode, bit | 127]) + size.to_bytes(8, "big")
    return head + bytes(4 * masked) + data


def hello(client: str, code: str = "") -> bytes:
    """Return the frame of a hello."""
    said = {"kind": "hello", "v": 1, "client": client, "name": "Eve", "code": code}
    return frame(json.dumps(said).encode())


def upgraded(port: int, path: str, last: int = 66) -> socket.socket | None:
    """Return a WebSocket, or None if it was refused."""
    with contextlib.suppress(OSError):
        made = plug(port, last)
        made.sendall(request(path))
        if made.recv(12).startswith(b"HTTP/1.1 101"):
            return made
        made.close()
    return None


ended: list[int] = []
"""SIGTERM, once it has come."""


def until(seconds: float) -> Iterator[int]:
    """Count rounds until the time is over, or SIGTERM."""
    end_s, number = time.monotonic() + seconds, 0
    while time.monotonic() < end_s and not ended:
        yield number
        number += 1


def pour(sockets: list[socket.socket], data: bytes, counts: Counter[str]) -> None:
    """Write as much as each socket takes now; remove closed ones."""
    for one in list(sockets):
        one.setblocking(False)
        try:
            counts["bytes"] += one.send(data)
        except BlockingIOError:
            counts["full"] += 1
        except OSError:
            counts["closed"] += 1
            sockets.remove(one)
            one.close()


def closed(one: socket.socket) -> bool:
    """Return whether the car has hung up."""
    one.setblocking(False)
    try:
        return one.recv(65536, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def drained(one: socket.socket) -> bool:
    """Read the pending bytes; return whether the car has hung up after them."""
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def slow_readers(port: int, seconds: float) -> Counter[str]:
    """Attack with viewers and watchers that never read."""
    counts: Counter[str] = Counter()
    sockets = []
    for number in range(40):
        client = f"sleeper-{number:04d}"
        for path in (f"/ws/video?id={client}", "/ws/drive"):
            made = upgraded(port, path, 60 + number % 4)
            if made is not None:
                if path == "/ws/drive":
                    made.sendall(hello(client))
                sockets.append(made)
    counts["open"] = len(sockets)
    time.sleep(seconds)
    return counts


def floods(port: int, seconds: float) -> Counter[str]:
    """Send good messages, big frames, tiny fragments, pings: as fast as the car reads."""
    ping = frame(b'{"kind":"ping","seq":1,"t":1}')
    tiny = frame(b"{", TEXT, 0) + frame(b"x", 0, 0) * 10_000
    loads = [
        ping * 500,
        frame(b"x" * 60_000),
        tiny,
        frame(b"", PING) * 5000,
        frame(b'{"kind":"estop"' + b" " * 3000),
        frame(b"\0" * 50, BINARY) * 200,
        frame(b"key") * 1000,
    ]
    ways = [("/ws/drive", hello(f"flooder-{number}")) for number in range(len(loads))]
    ways[6] = ("/ws/video?id=flooder-1", b"")
    return poured(port, seconds, list(zip(loads, ways, strict=True)))


def poured(
    port: int, seconds: float, loads: Sequence[tuple[bytes, tuple[str, bytes]]]
) -> Counter[str]:
    """Keep a socket for each (load, (path, first message)), and pour the load into it."""
    counts: Counter[str] = Counter()
    sockets: list[list[socket.socket]] = [[] for _ in loads]
    for round_ in until(seconds):
        for number, (load, (path, first)) in enumerate(loads):
            if not sockets[number] and round_ % 50 == 0:
                made = upgraded(port, path, 66 + number)
                if made is not None:
                    made.sendall(first)
                    sockets[number].append(made)
                    counts["sockets"] += 1
            pour(sockets[number], load, counts)
        time.sleep(0.001)
    return counts


def half_open(port: int, seconds: float) -> Counter[str]:
    """Hold silent connections, and requests that never end."""
    counts: Counter[str] = Counter()
    silent = [plug(port, 66 + number % 4) for number in range(100)]
    slow = [plug(port, 70 + number % 4) for number in range(100)]
    head = request("/ws/drive")
    for number in until(seconds):
        letter = head[number % (len(head) - 4) :][:1]
        pour(slow, letter, counts)
        time.sleep(0.1)
    counts["silent closed"] = sum(closed(one) for one in silent)
    counts["slow closed"] = counts.pop("closed", 0) + sum(closed(one) for one in slow)
    return counts


def bombs(port: int, seconds: float) -> Counter[str]:
    """Send 100,000 headers, one of a megabyte, a body without end, many requests in one."""
    counts: Counter[str] = Counter()
    start = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    loads = [
        start + b"".join(b"X-%d: 1\r\n" % number for number in range(100_000)),
        start + b"X-Long: " + b"x" * 1_000_000 + b"\r\n\r\n",
        start + b"Transfer-Encoding: chunked\r\n\r\n" + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 2000,
        start + b"Content-Encoding: gzip\r\nContent-Length: 999999999\r\n\r\n" + bytes(1_000_000),
        (start + b"\r\n") * 2000,
        b"GET /" + b"a" * 200_000,
    ]
    for number in until(seconds):
        with contextlib.suppress(OSError), plug(port, 66 + number % 4) as made:
            made.settimeout(0.5)
            with contextlib.suppress(OSError):
                made.sendall(loads[number % len(loads)])
            counts[made.recv(12).decode("latin-1")[9:] or "closed"] += 1
    return counts


def crowd(port: int, seconds: float) -> Counter[str]:
    """Open 1,000 connections at once: silent ones, ones without a hello, and watchers."""
    counts: Counter[str] = Counter()
    held = []
    for number in range(1000):
        last = 66 + number % 20
        with contextlib.suppress(OSError):
            made = plug(port, last)
            held.append(made)
            if number % 3:
                made.sendall(request("/ws/drive"))
            if number % 3 == 2:
                made.sendall(hello(f"watcher-{number:04d}"))
    poll = select.poll()
    for one in held:
        poll.register(one, select.POLLIN)
    print("crowded", flush=True)
    for _ in until(seconds):
        time.sleep(0.05)
    for one in held:
        one.setblocking(False)
        try:
            counts[one.recv(12).decode("latin-1")[9:] or "closed"] += 1
        except BlockingIOError:
            counts["silent"] += 1
        except OSError:
            counts["closed"] += 1
    return counts


def broken_frames(port: int, seconds: float) -> Counter[str]:
    """Send frames that RFC 6455 forbids: compressed, unmasked, reserved, endless."""
    counts: Counter[str] = Counter()
    good = hello("breaker-1")
    loads = [
        frame(bytes(60_000), TEXT, FIN | 0x40),
        frame(b"{}", masked=False),
        frame(b"", 3),
        frame(b"", 0xB),
        frame(b"x" * 126, PING),
        frame(b"x", 0),
        b"\x81\xff" + b"\x7f" + b"\xff" * 7 + bytes(4),
        b"\x81\xff" + b"\xff" * 8,
        frame(b"\xff\xfe"),
        frame(b"\0", 8),
        frame(b"x", 8) + good,
        b"\0" * 5000,
    ]
    offer = UPGRADE + "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    for number in until(seconds):
        path = "/ws/drive" if number % 2 else "/ws/video?id=breaker-1"
        with contextlib.suppress(OSError), plug(port, 66 + number % 4) as made:
            made.sendall(request(path, offer) + loads[number % len(loads)])
            said = made.recv(4096)
            counts[said[9:12].decode("latin-1")] += 1
            counts["compressed"] += b"permessage" in said
    return counts


def pushers(port: int, seconds: float) -> Counter[str]:
    """Push every button of the children's page at once, the game and the rainbow in turn, as
    fast as the car reads. The car's answers stay unread."""
    push = b"".join(frame(b'{"kind":"hold","held":%d}' % held) for held in (63, 0))
    choose = b"".join(
        frame(b'{"kind":"choose","mode":"%s"}' % mode) for mode in (b"game", b"rainbow")
    )
    loads = [push * 200, choose * 200, push * 10 + choose, frame(b"", PING) * 500]
    way = "/ws/buttons", frame(b'{"kind":"hello","v":1}')
    return poured(port, seconds, [(load, way) for load in loads])


def pretenders(port: int, seconds: float) -> Counter[str]:
    """Send wrong codes for ever, and one client id on many sockets."""
    counts: Counter[str] = Counter()
    for number in until(seconds):
        made = upgraded(port, "/ws/drive", 66 + number % 4)
        if made is None:
            counts["refused"] += 1
            continue
        guess = json.dumps({"kind": "unlock", "code": f"{number:06d}"}).encode()
        with contextlib.suppress(OSError), made:
            made.sendall(hello("one-and-the-same", f"{number:06d}") + frame(guess) * 5)
            counts["sockets"] += 1
            if number % 20 == 0:
                time.sleep(0.02)
                counts["metered"] += b"too many wrong codes" in made.recv(65536)
    return counts


def holding(addresses: range) -> Attack:
    """Return an attack that takes all places of these addresses, again and again: silent
    connections, sockets without a hello, watchers, viewers."""

    def attack(port: int, seconds: float) -> Counter[str]:
        counts: Counter[str] = Counter()
        held: list[socket.socket] = []
        for round_ in until(seconds):
            for number in range(len(addresses) * 8):
                last, kind = addresses[number % len(addresses)], number // 7 % 4
                path = "/ws/video?id=holder" if kind == 3 else "/ws/drive"
                made = None
                if kind == 0:
                    with contextlib.suppress(OSError):
                        made = plug(port, last)
                else:
                    made = upgraded(port, path, last)
                if made is None:
                    counts["refused"] += 1
                    continue
                if kind == 2:
                    with contextlib.suppress(OSError):
                        made.sendall(hello(f"holder-{round_}-{number}"))
                held.append(made)
            if round_ == ROUNDS_FULL:
                print("holding", flush=True)
            gone = [one for one in held if drained(one)]
            counts["ended"] += len(gone)
            for one in gone:
                held.remove(one)
                one.close()
        counts["open"] = len(held)
        return counts

    return attack


ATTACKS: dict[str, Attack] = {
    one.__name__: one
    for one in (slow_readers, floods, half_open, bombs, crowd, broken_frames, pretenders, pushers)
}
HOLDERS: dict[str, Attack] = {
    "two_holders": holding(range(66, 68)),
    "holders": holding(range(66, 90)),
}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    os.nice(10)  # leave the core to the car: the attacker would be another machine
    name, port, seconds = sys.argv[1:]
    print(dict({**ATTACKS, **HOLDERS}[name](int(port), float(seconds))), flush=True)
