"""Wiring of the service: pairing with the car beside, which retries."""

import asyncio
import errno
import socket
from pathlib import Path

import pytest

from fpvcar.wire.station import Pairing
from fpvstation import service
from fpvstation.errors import StationError
from fpvstation.fetch import client
from fpvstation.fetch.cars import Cars
from fpvstation.fetch.pull import CarFault
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER
from fpvstation.store.store import Store

URL = "http://127.0.0.1:1"


async def test_pairing_beside_retries_and_leaves_code_tries_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    faults: list[Exception] = [
        CarFault("not up yet"),
        StationError("That is not the grown-up code."),
        OSError(13, "codes cannot be read"),
        LookupError("nobody thought of it"),
    ]
    slept = list[float]()

    async def pair(*_: str) -> Pairing:
        if faults:
            raise faults.pop(0)
        return Pairing("Plague", "1" * 16, "2" * 32, "33" * 32)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(client, "pair", pair)
    cars = Cars(tmp_path)
    paired, fetched = asyncio.Event(), asyncio.Event()

    async def fetch() -> None:
        assert cars.all(), "the car's address may be new"
        fetched.set()

    fetching = asyncio.create_task(service._after(paired, fetch))
    await asyncio.wait_for(service._pair_beside(URL, cars, paired, sleep), 20.0)
    await asyncio.wait_for(fetching, 20.0)
    assert fetched.is_set()
    refused_s = service.REFUSED_S
    assert slept == [service.AGAIN_S, refused_s, refused_s, refused_s]
    assert 60.0 / refused_s < 5.0, "tries of the code a minute, which others need"
    assert [car.name for car in cars.all()] == ["Plague"]
    for words in ("grown-up code", "cannot be read", "nobody thought of it"):
        assert words in caplog.text


async def test_fetching_begins_without_the_car_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PAIRED_S", 0.05)
    began = asyncio.Event()

    async def fetch() -> None:
        began.set()

    await asyncio.wait_for(service._after(asyncio.Event(), fetch), 20.0)
    assert began.is_set()


async def test_watchdog_of_the_unit_is_fed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(20.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100")
        feeding = asyncio.create_task(service._feed_watchdog())
        said = await asyncio.to_thread(heard.recv, 100)
        feeding.cancel()
    assert said == b"WATCHDOG=1"
    monkeypatch.delenv("WATCHDOG_USEC")
    await service._feed_watchdog()


async def forever() -> None:
    await asyncio.Event().wait()


async def test_station_ends_with_the_first_task_that_fails() -> None:
    async def fail() -> None:
        raise ZeroDivisionError("oh")

    cancelled = list[str]()

    async def other() -> None:
        try:
            await forever()
        finally:
            cancelled.append("other")

    for endless, ending in (
        ({"chores": fail(), "page": other()}, {}),
        ({"page": other()}, {"pairing": fail()}),
    ):
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(service.until(asyncio.Event(), endless, ending), 20)
    assert cancelled == ["other", "other"]


async def test_station_ends_when_a_task_returns_that_should_not() -> None:
    async def done() -> None:
        pass

    with pytest.raises(StationError, match="page ended unexpectedly"):
        await service.until(asyncio.Event(), {"page": done()}, {})
    stop = asyncio.Event()
    running = asyncio.create_task(service.until(stop, {"page": forever()}, {"pairing": done()}))
    await asyncio.sleep(0.01)
    assert not running.done(), "pairing may end"
    stop.set()
    await asyncio.wait_for(running, 20)


def opened(root: Path, state: Path) -> str:
    root.mkdir(exist_ok=True)
    return service._open(Store(Folder(root)), root, state, False)


def test_other_store_beside_the_car_has_a_state_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    usual, other = tmp_path / "usual", tmp_path / "other"
    first = opened(usual, service.state_of(usual))
    state = service.state_of(other, own=True)
    assert state != service.state_of(usual) == tmp_path / "state"
    second = opened(other, state)
    assert second != first
    assert service.state_of(other) == state, "verbs use it, too"
    assert (opened(usual, service.state_of(usual)), opened(other, state)) == (first, second)
    (other / MARKER).unlink()
    with pytest.raises(StationError, match=f"no {MARKER} here, expected the store {second}"):
        opened(other, service.state_of(other, own=True))


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EADDRINUSE, StationError, "busy: is another station open?.*make run STATION_PORT="),
        (errno.EMFILE, OSError, "busy"),
    ],
)
async def test_busy_port_of_the_page_has_a_next_step(
    number: int, kind: type[Exception], words: str
) -> None:
    class Busy:
        async def run(self) -> None:
            raise OSError(number, "busy")

    with pytest.raises(kind, match=words):
        await service._serve(Busy())  # type: ignore[arg-type]
