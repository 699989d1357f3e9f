"""Cars that announce themselves: over real multicast, on this machine's loopback."""

import asyncio
import socket
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from fpvcar.cli import setup
from fpvstation.__main__ import main
from fpvstation.fetch.cars import HTTPS_PORT
from fpvstation.fetch.discover import TYPE, ZEROCONF_MISSING, AnnouncedCar, browse

LOOPBACK = "127.0.0.1"
PORT = 8081


async def announced(name: str) -> AsyncZeroconf:
    """Announce a car of that name, in the form of its avahi."""
    car = AsyncZeroconf(interfaces=[LOOPBACK])
    info = AsyncServiceInfo(
        TYPE,
        f"{name}.{TYPE}",
        PORT,
        server=f"{name}.local.",
        addresses=[socket.inet_aton("192.0.2.5")],
    )
    await (await car.async_register_service(info, cooperating_responders=True))
    return car


@pytest.mark.slow
async def test_announced_car_is_found_until_it_leaves() -> None:
    name = "Plague-of-the-test"
    car = await announced(name)
    try:
        for _ in range(10):
            found = [one for one in await browse(0.5, [LOOPBACK]) if one.name == name]
            if found:
                break
    finally:
        await car.async_close()
    assert found == [AnnouncedCar(name, f"{name}.local", ("192.0.2.5",), PORT)]
    assert found[0].url == f"https://192.0.2.5:{PORT}"
    assert found[0].has_address(f"{name}.LOCAL") and not found[0].has_address("192.0.2.6")
    assert not [one for one in await browse(0.5, [LOOPBACK]) if one.name == name]


@pytest.mark.slow
def test_list_of_cars_shows_the_pair_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    loop = asyncio.new_event_loop()
    car = loop.run_until_complete(announced("Arrow-of-the-test"))
    try:
        asked = loop.run_in_executor(None, main, ["cars", f"--interface={LOOPBACK}", "--seconds=2"])
        assert loop.run_until_complete(asked) == 0
        loop.run_until_complete(car.async_close())
    finally:
        loop.close()
    line = f"Arrow-of-the-test found: fpvstation pair https://192.0.2.5:{PORT}"
    assert line in capsys.readouterr().out


async def test_missing_zeroconf_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(Exception, match=ZEROCONF_MISSING.partition(":")[0]):
        await browse(0.0)


def test_avahi_file_announces_the_service_that_is_searched() -> None:
    service = xml.etree.ElementTree.fromstring(setup.ANNOUNCED).find("service")
    assert service is not None
    assert f"{service.findtext('type')}.local." == TYPE
    assert int(service.findtext("port") or 0) == HTTPS_PORT == PORT
