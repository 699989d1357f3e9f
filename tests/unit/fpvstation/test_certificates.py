"""Car with another certificate: the same car, or an impostor."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from testkit.base_station.station import car_application, stations_of

from fpvcar.http import certificates
from fpvstation.fetch import client
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.client import certificate_of
from fpvstation.fetch.pull import CarFault
from fpvstation.fetch.scheduler import CarState, FetchScheduler
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from tests.unit.fpvstation.fetch.test_client import NAME, car_at

PEM = certificates.CERTIFICATE
DATA = b"a minute"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "recordings"
    made.mkdir()
    (made / NAME).write_bytes(DATA)
    return made


def tls_of(state: Path, *names: str) -> ssl.SSLContext:
    state.mkdir(exist_ok=True)
    return certificates.server_context(state, ["localhost", *names])


def car_of(folder: Path, state: Path) -> web.Application:
    """Return the car of this state, with the certificate that it reports."""
    own = certificates.fingerprint((state / PEM).read_bytes())
    return car_application(folder, stations_of(state), certificate=own)


@asynccontextmanager
async def paired(folder: Path, state: Path, home: Path) -> AsyncIterator[Car]:
    """Serve the car as plague.local, paired with a station in `home`."""
    tls = tls_of(state, "plague", "plague.local")
    async with car_at(car_of(folder, state), tls) as url:
        pin = await client.fingerprint_of(url)
        made = await client.pair(url, pin, "grownups", "office")
        yield Cars(home).add(made, url, pin)


def moved(home: Path, url: str) -> Car:
    """Change the car's port in the list; its address stays the same."""
    cars = Cars(home)
    (car,) = cars.all()
    text = (home / "cars.json").read_text().replace(car.url, url)
    (home / "cars.json").write_text(text)
    return cars.all()[0]


async def test_renamed_car_is_accepted_as_the_same_car(folder: Path, tmp_path: Path) -> None:
    """A new name is a new authority, too: the old one may not sign it."""
    state = tmp_path / "car"
    async with paired(folder, state, tmp_path) as was:
        root = (state / certificates.ROOT).read_bytes()
    tls = tls_of(state, "arrow", "arrow.local")
    assert (state / certificates.ROOT).read_bytes() != root
    store = Store(Folder(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    store.open("")
    async with car_at(car_of(folder, state), tls) as url:
        old, cars = moved(tmp_path, url), Cars(tmp_path)
        keeper, said = FetchScheduler(cars, store), CarState(old.name, old.folder, url)
        with pytest.raises(CarFault, match="a new certificate, and proved its identity"):
            await keeper._round(old, said, True)
        (now,) = cars.all()
        assert now.fingerprint == await client.fingerprint_of(url) != was.fingerprint
        assert (await keeper._round(now, said, True)).receipts == 1
    assert (now.id, now.folder, now.key) == (was.id, was.folder, was.key)


async def refused(home: Path, app: web.Application, tls: ssl.SSLContext) -> str:
    """Return the refusal of this application in the car's place."""
    async with car_at(app, tls) as url:
        with pytest.raises(CarFault) as said:
            await certificate_of(moved(home, url))
    return str(said.value)


async def test_foreign_car_of_the_same_name_is_refused(folder: Path, tmp_path: Path) -> None:
    state, foreign = tmp_path / "car", tmp_path / "foreign"
    async with paired(folder, state, tmp_path):
        pass
    tls = tls_of(foreign, "plague", "plague.local")
    assert "station may not" in await refused(tmp_path, car_of(folder, foreign), tls)
    old = car_application(folder, stations_of(state))
    assert "a machine in the middle" in await refused(tmp_path, old, tls), "it shows none"
    assert "update fpvcar on the car" in await refused(tmp_path, web.Application(), tls)


async def test_forwarded_answers_of_the_car_are_refused(folder: Path, tmp_path: Path) -> None:
    state, foreign = tmp_path / "car", tmp_path / "foreign"
    forwarded: list[str] = []
    async with paired(folder, state, tmp_path) as car:

        async def pass_on(request: web.Request) -> web.Response:
            forwarded.append(request.path)
            async with aiohttp.ClientSession() as way:
                address = car.url + request.path_qs
                headers = {k: v for k, v in request.headers.items() if k[:2] == "X-"}
                async with way.get(address, headers=headers, ssl=False) as answer:
                    body, mac = await answer.read(), answer.headers["X-Mac"]
            return web.Response(body=body, headers={"X-Mac": mac})

        between = web.Application()
        between.router.add_get("/{path:.*}", pass_on)
        tls = tls_of(foreign, "plague", "plague.local")
        assert "a machine in the middle" in await refused(tmp_path, between, tls)
    assert forwarded == ["/api/station/certificate"]
