"""The answer to phones that look for the Internet in the car's own Wi-Fi."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator

import pytest
from testkit.harness import running

from fpvcar.cli import network, setup
from fpvcar.config import ConfigError
from fpvcar.http import addresses
from fpvcar.wifi import portal

PAGE = "http://10.42.0.1:8080/"
PROBES = {
    "Android": "connectivitycheck.gstatic.com/generate_204",
    "Android, Chrome": "clients3.google.com/generate_204",
    "iOS, macOS": "captive.apple.com/hotspot-detect.html",
    "Windows": "www.msftconnecttest.com/connecttest.txt",
    "Windows, its page": "www.msftconnecttest.com/redirect",
    "Firefox": "detectportal.firefox.com/success.txt?ipv4",
    "GNOME": "nmcheck.gnome.org/check_network_status.txt",
}
"""Requests over plain http by which a system looks for a sign-in page, as host/path."""


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(portal, "REQUEST_S", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    async with running(portal.serve(listener)):
        yield int(listener.getsockname()[1])


async def answer(port: int, request: bytes) -> bytes:
    """Send bytes; return everything that comes until the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("system", PROBES)
async def test_probe_of_each_system_is_led_to_the_page(system: str, method: str, port: int) -> None:
    host, _, path = PROBES[system].partition("/")
    request = f"{method} /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: probe\r\n\r\n"
    head, _, body = (await answer(port, request.encode())).decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.split(": ") for line in lines)
    assert status.startswith("HTTP/1.1 302 ") and headers["Location"] == PAGE
    assert headers["Cache-Control"] == "no-store", "the same probe, at home, has another answer"
    assert headers["Connection"] == "close" and (headers["Content-Length"], body) == ("0", "")


@pytest.mark.parametrize("system", PROBES)
def test_page_itself_still_refuses_the_name_of_a_probe(system: str) -> None:
    """Every name is the car's in that network: DNS rebinding is left to the page to refuse."""
    host = PROBES[system].partition("/")[0]
    assert not addresses.host_allowed(host, "Rusty") and not addresses.host_allowed(
        f"{host}:8080", "R"
    )


@pytest.mark.parametrize(
    "request_bytes", [b"", b"GET / HTTP/1.1\r\nHost: a", b"\x16\x03\x01", b"x" * 99_999]
)
async def test_incomplete_or_endless_request_is_closed_without_answer(
    request_bytes: bytes, port: int
) -> None:
    assert await answer(port, request_bytes) == b""
    assert b"302" in await answer(port, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n"), "others are served"


async def test_portal_ends_when_idle() -> None:
    """systemd starts it again at the next request, which waits in its socket."""
    with socket.create_server(("127.0.0.1", 0)) as kept:
        await asyncio.wait_for(portal.serve(kept.dup(), idle_s=0.05), 10)
        reader, writer = await asyncio.open_connection(*kept.getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        again = asyncio.create_task(portal.serve(kept.dup(), idle_s=0.05))
        assert b"302" in await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await asyncio.wait_for(again, 10)


def test_portal_needs_the_socket_of_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LISTEN_PID", raising=False)
    with pytest.raises(ConfigError, match=r"fpvcar-portal\.socket"):
        network.lead()


def test_names_lead_to_the_car_in_its_own_network_only() -> None:
    text = setup.OWN_FILES[setup.NAMES]
    assert text.endswith("\naddress=/#/10.42.0.1\nlocal=/#/\n")
    assert setup.NAMES.startswith("etc/NetworkManager/dnsmasq-shared.d/")
    dnsmasq = shutil.which("dnsmasq", path="/usr/sbin:/sbin:/usr/bin")
    if dnsmasq is None:
        pytest.skip("dnsmasq is not installed; sudo apt install dnsmasq-base")
    words = [dnsmasq, "--test", "--conf-file=-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
