"""Listener: accepted connections, refusals, and crowds."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from testkit.hub import until
from testkit.network.attacks import frame
from testkit.network.ports import free_port

from fpvcar.http import certificates, limits, listener
from fpvcar.http.fast_path import FastPath
from fpvcar.http.limits import Places
from fpvcar.http.listener import READ_BYTES, Listener


class Echo(asyncio.Protocol):
    """Protocol that sends back its input."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@asynccontextmanager
async def opened(
    places: Places,
    protocol: Callable[[], asyncio.Protocol] = Echo,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Open a listener; yield its port. At the end no place may be taken."""
    door, port = Listener(places, protocol), free_port()
    await door.open(host, port, tls)
    yield port
    async with asyncio.timeout(20.0):
        while places.taken:
            await asyncio.sleep(0.01)
    await door.close()


async def said(port: int, host: str = "127.0.0.1") -> bytes:
    """Return the answer to a newcomer: its own data, or the reason of the refusal."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"x")
    async with asyncio.timeout(20.0):
        heard = await reader.read(1000)
    writer.close()
    return heard


async def test_full_listener_answers_503_and_has_room_again() -> None:
    limit = Places(2, 2)
    async with opened(limit) as port:
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
        await until(lambda: not limit.taken)
        assert await said(port) == b"x"


def secured(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server and of a client that trusts it."""
    server = certificates.server_context(folder, ["localhost"])
    return server, ssl.create_default_context(cafile=folder / "root.crt")


async def test_unfinished_tls_handshake_is_counted_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "TLS_S", 0.3)
    server, trusting = secured(tmp_path)
    async with opened(Places(3, 3), tls=server) as port:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname="localhost"
        )
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        silent = await asyncio.open_connection("127.0.0.1", port)
        garbage = await asyncio.open_connection("127.0.0.1", port)
        garbage[1].write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(20.0):
            assert await silent[0].read(1) == b""
            with contextlib.suppress(ConnectionError):
                await garbage[0].read(1000)
        for each in (silent[1], garbage[1], writer):
            each.close()


class Gulp(asyncio.Protocol):
    """Protocol that records the size of each read, until all bytes have come."""

    def __init__(self, wanted: int) -> None:
        self.sizes: list[int] = []
        self.wanted, self.full = wanted, asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.sizes.append(len(data))
        if sum(self.sizes) >= self.wanted:
            self.full.set()


@pytest.mark.parametrize("secure", [False, True])
async def test_flood_is_read_in_small_reads_at_the_rate_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    burst, second, sent = 60_000, 1_000_000, 300_000
    monkeypatch.setattr(limits, "BYTES_BURST", float(burst))
    monkeypatch.setattr(limits, "BYTES_PER_S", float(second))
    protocol = Gulp(sent)
    server, trusting = secured(tmp_path) if secure else (None, None)
    async with opened(Places(3, 3), lambda: protocol, tls=server) as port:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname="localhost" if secure else None
        )
        begin_s = time.monotonic()
        writer.write(bytes(sent))
        async with asyncio.timeout(20.0):
            await protocol.full.wait()
        # Under TLS one read may end several records that had begun before.
        assert max(protocol.sizes) <= READ_BYTES + 16384 * secure
        if not secure:
            assert time.monotonic() - begin_s >= (sent - burst) / second - 0.05
        writer.close()
        await writer.wait_closed()


async def test_wishes_that_waited_while_a_peer_was_paced_are_void(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "BYTES_BURST", 4000.0)
    monkeypatch.setattr(limits, "BYTES_PER_S", 400_000.0)
    events, over = list[str](), asyncio.Event()

    def take(text: str) -> bool:
        events.append("take")
        if text == "last":
            over.set()
        return True

    def shortcut() -> FastPath:
        return FastPath(asyncio.Protocol(), take, events.append, lambda: events.append("paced"))

    async with opened(Places(3, 3), shortcut) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"x" * 3000) * 20 + frame(b"last"))
        async with asyncio.timeout(20.0):
            await over.wait()
        words = "".join(event[0] for event in events)
        pauses = words.strip("t").replace("t", " ").split()
        assert len(pauses) >= 10, events
        assert set(pauses[:-1]) == {"pp"}, "void at the pause and when reading goes on"
        writer.close()


async def test_loss_options_are_set_and_unknown_ones_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown = (socket.IPPROTO_TCP, 9999, 1)
    monkeypatch.setattr(listener, "LOSSY", (*listener.LOSSY, unknown))
    found: list[int] = []

    class Noted(Echo):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            peer = transport.get_extra_info("socket")
            with contextlib.suppress(OSError):  # a kernel before 6.15
                found.extend(peer.getsockopt(*one[:2]) for one in listener.LOSSY[:2])

    async with opened(Places(2, 2), Noted) as port:
        assert await said(port) == b"x", "an option that the kernel lacks ends nothing"
    assert found in ([1], [1, 20_000])


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
async def test_any_address_is_reached_over_both_families(host: str) -> None:
    async with opened(Places(4, 4), host=host) as port:
        assert [await said(port, peer) for peer in ("127.0.0.1", "::1")] == [b"x", b"x"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_kernel_without_ipv6_serves_ipv4(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = listener._listening

    def without(family: int, address: tuple[object, ...]) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, address)

    monkeypatch.setattr(listener, "_listening", without)
    async with opened(Places(4, 4), host=host) as port:
        assert await said(port) == b"x"


async def test_any_address_with_one_family_busy_opens_nothing() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on :: port {port}: Address already"):
            await Listener(Places(1, 1), Echo).open("::", port)
    with socket.socket(socket.AF_INET6) as free:
        free.bind(("::", port))


@contextlib.contextmanager
def no_descriptors() -> Iterator[list[int]]:
    """Open all descriptors that this process may have; the yielded list may be closed."""
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


async def test_listener_without_descriptors_waits_without_spinning() -> None:
    # Not a fixture: it must not be in force while pytest makes the event loop.
    async with opened(Places(9, 9)) as port:
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
                async with asyncio.timeout(20.0):
                    await loop.sock_sendall(knocks, b"x")
                    assert await loop.sock_recv(knocks, 1) == b"x"
