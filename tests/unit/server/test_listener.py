"""The door: who gets a connection, what the others are told, what becomes of crowds."""

import asyncio
import contextlib
import os
import resource
import socket
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar import paths
from fpvcar.bench.supervisor import in_url
from fpvcar.server import credentials, listener
from fpvcar.server.listener import (
    BYTES_BURST,
    BYTES_PER_S,
    KNOWN_MAX,
    READ_BYTES,
    Doorway,
    Pace,
    Places,
)


def test_places_are_counted_in_all_and_for_each_address() -> None:
    places = Places(3, 2, kept=1)
    assert [places.enter("10.0.0.1") for _ in range(2)] == [None, None]
    assert places.enter("10.0.0.1") == "2 are open from 10.0.0.1"
    assert places.enter("10.0.0.2") is None
    assert places.enter("10.0.0.3") == "3 are open"
    places.leave("10.0.0.1")
    assert places.enter("10.0.0.3") is None


def test_who_may_drive_has_places_of_its_own() -> None:
    places = Places(2, 2, kept=1)
    places.know("10.0.0.9")
    assert places.enter("10.0.0.1") is None and places.enter("10.0.0.2") is None
    assert places.enter("10.0.0.3") is not None
    assert places.enter("10.0.0.9") is None
    assert places.enter("10.0.0.9") == "2 are open"


def test_an_ipv6_network_is_one_address() -> None:
    places = Places(9, 1)
    assert places.enter("2001:db8::1") is None
    assert places.enter("2001:db8::2") is not None
    assert places.enter("2001:db8:0:1::1") is None


def test_only_the_newest_drivers_are_remembered() -> None:
    places = Places(1, 9, kept=1)
    for number in range(KNOWN_MAX + 1):
        places.know(f"10.0.0.{number}")
    assert places.enter("10.0.1.1") is None
    assert places.enter("10.0.0.0") is not None
    assert places.enter("10.0.0.1") is None


def test_a_slip_is_free_and_a_flood_waits_until_it_is_paid() -> None:
    pace, burst = Pace(7.0), int(BYTES_BURST)
    assert pace.pause_s(burst, 7.0) == 0.0
    assert pace.pause_s(4096, 7.0) == 4096 / BYTES_PER_S
    assert pace.pause_s(0, 7.0 + 4096 / BYTES_PER_S) == 0.0
    assert pace.pause_s(int(BYTES_PER_S), 8.0 + 4096 / BYTES_PER_S) == 0.0
    assert pace.pause_s(burst, 1000.0) == 0.0, "what was not sent is not saved up"
    assert pace.pause_s(1, 1000.0) > 0.0


class Echo(asyncio.Protocol):
    """Says back what it hears."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def said(port: int) -> bytes:
    """What a newcomer hears: its own word, or why it may not come in."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"x")
    async with asyncio.timeout(5):
        heard = await reader.read(1000)
    writer.close()
    return heard


async def test_a_full_house_says_so_and_has_room_again() -> None:
    places, port = Places(2, 2), free_port()
    door = Doorway(places, Echo)
    await door.open("127.0.0.1", port)
    inside = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for reader, writer in inside:
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
    with socket.create_connection(("127.0.0.1", port)) as refused:
        answer = await asyncio.to_thread(refused.recv, 1000)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"2 are open from 127.0.0.1 already (server.max_connections" in answer
    for _, writer in inside:
        writer.close()
        await writer.wait_closed()
    for _ in range(500):
        if places.taken:
            await asyncio.sleep(0.01)
    assert places.taken == 0
    assert await said(port) == b"x"
    await door.close()


async def test_a_handshake_is_counted_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "TLS_S", 0.3)
    places, port = Places(3, 3), free_port()
    door = Doorway(places, Echo)
    await door.open(
        "127.0.0.1", port, credentials.server_context(tmp_path, ["localhost"])
    )
    trusting = ssl.create_default_context(cafile=tmp_path / "https.crt")
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting, server_hostname="localhost"
    )
    writer.write(b"x")
    assert await reader.readexactly(1) == b"x"
    silent = await asyncio.open_connection("127.0.0.1", port)
    garbage = await asyncio.open_connection("127.0.0.1", port)
    garbage[1].write(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        assert await silent[0].read(1) == b""
        with contextlib.suppress(ConnectionError):
            await garbage[0].read(1000)
    for each in (silent[1], garbage[1], writer):
        each.close()
    for _ in range(500):
        if places.taken:
            await asyncio.sleep(0.01)
    assert places.taken == 0
    await door.close()


class Gulp(asyncio.Protocol):
    """Notes the size of each read, until it has had them all."""

    def __init__(self, wanted: int) -> None:
        self.sizes: list[int] = []
        self.wanted, self.full = wanted, asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.sizes.append(len(data))
        if sum(self.sizes) >= self.wanted:
            self.full.set()


@pytest.mark.parametrize("secure", [False, True])
async def test_a_flood_is_read_in_bites_and_then_at_its_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    burst, second, sent = 60_000, 1_000_000, 300_000
    monkeypatch.setattr(listener, "BYTES_BURST", float(burst))
    monkeypatch.setattr(listener, "BYTES_PER_S", float(second))
    protocol, port, server, trusting = Gulp(sent), free_port(), None, None
    if secure:
        server = credentials.server_context(tmp_path, ["localhost"])
        trusting = ssl.create_default_context(cafile=tmp_path / "https.crt")
    door = Doorway(Places(3, 3), lambda: protocol)
    await door.open("127.0.0.1", port, server)
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting, server_hostname="localhost" if secure else None
    )
    begin_s = time.monotonic()
    writer.write(bytes(sent))
    async with asyncio.timeout(10):
        await protocol.full.wait()
    # Under TLS a bite may end several records that had begun before.
    assert max(protocol.sizes) <= READ_BYTES + 16384 * secure
    if not secure:
        assert time.monotonic() - begin_s >= (sent - burst) / second - 0.05
    writer.close()
    await writer.wait_closed()
    await door.close()


async def test_a_busy_port_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}"):
            await Doorway(Places(1, 1), Echo).open("127.0.0.1", port)


@contextlib.contextmanager
def no_descriptors() -> Iterator[list[int]]:
    """All that this process may open, opened; the list may be closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 + max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    held: list[int] = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        yield held
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_without_descriptors_the_door_waits_and_does_not_spin() -> None:
    # Not a fixture: it must not be in force while pytest makes the event loop.
    port = free_port()
    door = Doorway(Places(9, 9), Echo)
    await door.open("127.0.0.1", port)
    with socket.socket() as knocks:
        knocks.setblocking(False)
        with no_descriptors() as held:
            with pytest.raises(BlockingIOError):
                knocks.connect(("127.0.0.1", port))
            before_s = os.times().user + os.times().system
            await asyncio.sleep(1.0)
            assert os.times().user + os.times().system - before_s < 0.3
            while held:
                os.close(held.pop())
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(5):
                await loop.sock_sendall(knocks, b"x")
                assert await loop.sock_recv(knocks, 1) == b"x"
    await door.close()


def test_the_limit_of_descriptors_is_raised_or_obeyed() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        assert listener.places(256, 128).most == 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256
        if hard != resource.RLIM_INFINITY:
            assert listener.places(hard, 128).most == hard - 80
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_runtime_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    paths.refuse_shared(own, os.getuid())
    with pytest.raises(OSError, match="expected 12345, 0700"):
        paths.refuse_shared(own, 12345)
    own.chmod(0o750)
    with pytest.raises(OSError, match="mode 0750"):
        paths.refuse_shared(own, os.getuid())
    link = tmp_path / "link"
    link.symlink_to(own)
    with pytest.raises(OSError, match="expected a directory of our own"):
        paths.refuse_shared(link, os.getuid())


def test_without_a_given_one_the_runtime_directory_is_our_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = paths.runtime_directory()
    assert path == tmp_path / f"fpvcar-{os.getuid()}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert in_url("::1") == "[::1]" and in_url("fe80::1%eth0") == "[fe80::1%25eth0]"
    assert in_url("10.0.0.1") == "10.0.0.1"
