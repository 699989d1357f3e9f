"""Listening addresses of the car: https on the LAN, if a certificate can be made."""

import asyncio
import contextlib
import errno
import logging
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from testkit.network.ports import free_port

from fpvcar.http import endpoints
from fpvcar.http.endpoints import Address, Site
from fpvcar.http.limits import Places
from fpvcar.http.listener import Listener
from fpvcar.runtime import files


@pytest.fixture(autouse=True)
def other_tests_have_their_logs() -> Iterator[None]:
    """Restore the log filters, as a site thins out the logs of its process."""
    loggers = [logging.getLogger(name) for name in endpoints.CROWDED_LOGS]
    before = [list(logger.filters) for logger in loggers]
    yield
    for logger, filters in zip(loggers, before, strict=True):
        logger.filters[:] = filters


def test_loopback_address_has_no_https(tmp_path: Path) -> None:
    address = endpoints.address("127.0.0.1", 8080, tmp_path, "Plague")
    assert address.tls is None and address.https_port == 0
    assert not list(tmp_path.iterdir())


def test_lan_address_has_https_on_the_next_port(tmp_path: Path) -> None:
    address = endpoints.address("0.0.0.0", 8080, tmp_path, "Plague")
    assert address.tls is not None and address.https_port == 8081


def test_certificate_has_allowed_hosts_beyond_the_lan(tmp_path: Path) -> None:
    hosts = ("10.99.3.2", "Car.Example.org", "a,IP:1.2.3.4", "", "a..b", "x" * 64)
    assert endpoints.address("0.0.0.0", 8080, tmp_path, "Plague", hosts).tls is not None
    command = ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in"]
    text = subprocess.check_output([*command, str(tmp_path / "https.crt")], text=True)
    assert "IP Address:10.99.3.2, DNS:car.example.org\n" in text
    assert "1.2.3.4" not in text


def test_missing_certificate_turns_https_off_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    address = endpoints.address("0.0.0.0", 8080, tmp_path, "Plague")
    assert address.tls is None and address.https_port == 0
    assert "https is off: no certificate" in caplog.text


def application() -> web.Application:
    async def ping(request: web.Request) -> web.Response:
        return web.Response(text="pong")

    app = web.Application()
    app.router.add_get("/", ping)
    return app


@asynccontextmanager
async def running(places: Places) -> AsyncIterator[int]:
    """Run a site; yield its port."""
    port, listening = free_port(), asyncio.Event()
    address = Address("127.0.0.1", port, None)
    site = asyncio.create_task(Site(application, places, address, listening.set).run())
    async with asyncio.timeout(20.0):
        await listening.wait()
        yield port
    site.cancel()
    await asyncio.gather(site, return_exceptions=True)


async def test_site_serves_until_it_is_cancelled() -> None:
    limit = Places(4, 4)
    async with running(limit) as port, aiohttp.ClientSession() as client:
        async with client.get(f"http://127.0.0.1:{port}/") as answer:
            assert await answer.text() == "pong"
        assert limit.taken == 1
    assert limit.taken == 0


@pytest.mark.parametrize("expected", [b"100-contin\xff", b"a pony"])
async def test_bad_expect_header_is_refused_and_not_logged(
    expected: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal of aiohttp repeats the header, and fails if it is not UTF-8."""
    async with running(Places(4, 4)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
            b"Connection: close\r\nExpect: %b\r\n\r\n" % expected
        )
        said = (await reader.read()).decode()
        writer.close()
    assert said.startswith("HTTP/1.1 417 ")
    assert said.endswith('Expect refused: only "100-continue" can be.\n')
    assert not [one for one in caplog.records if one.name == "aiohttp.server"]


async def test_busy_port_ends_the_site() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = int(other.getsockname()[1])
        address = Address("127.0.0.1", port, None)
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}"):
            await Site(application, Places(1, 1), address).run()


async def test_failing_listener_ends_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable car must restart, instead of running without a listener."""

    def fails(_: Listener, peer: socket.socket, *more: object) -> None:
        peer.close()
        raise RuntimeError("no room for a connection")

    monkeypatch.setattr(Listener, "_let_in", fails)
    port, listening = free_port(), asyncio.Event()
    address = Address("127.0.0.1", port, None)
    site = asyncio.create_task(Site(application, Places(8, 8), address, listening.set).run())
    await asyncio.wait_for(listening.wait(), 20.0)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    with pytest.raises(RuntimeError, match="no room for a connection"):
        await asyncio.wait_for(site, 20.0)


def test_full_card_turns_off_https_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_whole", full)
    assert endpoints.address("0.0.0.0", 8080, tmp_path, "Rusty").tls is None
    assert "https is off: No space left on device; sudo fpvcar doctor shows" in caplog.text
