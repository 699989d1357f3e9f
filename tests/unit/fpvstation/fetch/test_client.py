"""Station and car over HTTP: pairing, pulling, and impostors."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from testkit.base_station.station import car_application, stations_of

from fpvcar.http import certificates
from fpvcar.http.pages import PROBLEM, errors_as_pages
from fpvcar.http.responses import refused
from fpvcar.runtime.texts import SAYS, VERBATIM, Text
from fpvcar.wire import station as wire
from fpvcar.wire.station import Sums
from fpvstation.errors import StationError
from fpvstation.fetch import client
from fpvstation.fetch.cars import Car
from fpvstation.fetch.client import HttpCar
from fpvstation.fetch.fair_slots import FairSemaphore
from fpvstation.fetch.pull import CarFault, Pull, Round, SegmentGone
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store

NAME = "Plague-20261121T193100Z-0001.mcap"
SECOND = NAME.replace("0001", "0002")
DATA = bytes(range(256)) * 9000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "car"
    made.mkdir()
    (made / NAME).write_bytes(DATA)
    (made / SECOND).write_bytes(b"second")
    return made


@asynccontextmanager
async def car_at(app: web.Application, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve an application on a port; yield its URL."""
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    try:
        yield str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


async def paired(url: str, pin: str = "") -> Car:
    made = await client.pair(url, pin, "grownups", "office")
    return Car(made.car, made.id, url, pin, made.station, made.key, made.car)


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def stranger(url: str) -> Car:
    """Return a car that this station has never paired with."""
    return Car("Plague", "1" * 16, url, "", "2" * 32, KEY, "Plague")


@asynccontextmanager
async def asking(car: Car) -> AsyncIterator[HttpCar]:
    async with client.session(car.url, car.fingerprint) as session:
        yield HttpCar(car, session)


def store_in(root: Path) -> Store:
    root.mkdir(exist_ok=True)
    store = Store(Folder(root))
    store.open("")
    return store


async def pull(car: Car, root: Path, everything: bool = False) -> Round:
    async with asking(car) as http:
        pull = Pull(http, store_in(root), car.folder, act, FairSemaphore())
        return await pull.once(everything)


async def test_station_pulls_all_segments_over_tls(folder: Path, tmp_path: Path) -> None:
    tls = certificates.server_context(tmp_path, ["localhost"])
    app = car_application(folder, stations_of(tmp_path))
    async with car_at(app, tls) as url:
        pin = await client.fingerprint_of(url)
        assert len(pin) == 64
        car = await paired(url, pin)
        done = await pull(car, tmp_path / "store")
        assert (done.stored, done.receipts, done.bad) == ([NAME, SECOND], 2, {})
        assert done.bytes == len(DATA) + len(b"second")
        again = await pull(car, tmp_path / "store")
        assert (again.stored, again.bytes) == ([], 0)
        (tmp_path / "store/Plague/2026-11-21").rename(tmp_path / "lost")
        later = await pull(car, tmp_path / "store", everything=True)
        assert later.stored == [NAME, SECOND]
        other = msgspec.structs.replace(car, fingerprint="00" * 32)
        with pytest.raises(CarFault, match="certificate has changed"):
            await pull(other, tmp_path / "store")
    assert (folder / (NAME + ".ack")).exists()


async def test_pull_resumes_where_it_ended(folder: Path, tmp_path: Path) -> None:
    async with car_at(car_application(folder, stations_of(tmp_path))) as url:
        car = await paired(url)
        async with asking(car) as http:
            sums = await http.sums(NAME)
        store_in(tmp_path / "store").write("Plague", NAME, sums, 0, DATA[: 1 << 20])
        done = await pull(car, tmp_path / "store")
        assert done.bytes == len(DATA) - (1 << 20) + len(b"second")


async def test_segment_damaged_on_the_car_gets_no_receipt(folder: Path, tmp_path: Path) -> None:
    async with car_at(car_application(folder, stations_of(tmp_path))) as url:
        car = await paired(url)
        async with asking(car) as http:
            await http.sums(NAME)  # and the car keeps them
        bent = bytearray(DATA)
        bent[5] ^= 1
        (folder / NAME).write_bytes(bent)
        for _ in range(2):
            done = await pull(car, tmp_path / "store")
            assert str(done.bad[NAME]) == "1 MiB arrived damaged"
        assert done.bytes == 0, "the good pieces are here already"
    assert not (folder / (NAME + ".ack")).exists()
    assert (folder / (SECOND + ".ack")).exists(), "the others come all the same"


async def test_wrong_code_or_ended_station_is_refused(folder: Path, tmp_path: Path) -> None:
    stations = stations_of(tmp_path)
    async with car_at(car_application(folder, stations)) as url:
        with pytest.raises(StationError, match="not the grown-up code"):
            await client.pair(url, "", "wrong", "office")
        car = await paired(url)
        async with asking(car) as http:
            assert await http.is_paired()
        stations.end(car.station)
        async with asking(car) as http:
            assert not await http.is_paired()
        with pytest.raises(CarFault, match="fpvstation pair"):
            await pull(car, tmp_path / "store")
        async with asking(await paired(url)) as http:
            await http.end()
        assert not stations.all()


KEY = "11" * 32
FULL = Text("too_many_codes", "Too many wrong codes: try again in {wait_s} s.", wait_s=9)
ENGLISH = VERBATIM(text=str(FULL))
CUT = VERBATIM(text="x" * 200)
BOMB: str | Text = "x" * 200
for _ in range(20):
    BOMB = Text("both", "{first}" * 20, first=BOMB)


def problem(title: str, text: str | Text) -> bytes:
    return msgspec.json.encode({"type": "", "title": title, "status": 403, "text": text})


def always(handler: Callable[[web.Request], Any], *middlewares: Any) -> web.Application:
    """Return an application with one handler for all requests."""
    app = web.Application(middlewares=middlewares)
    app.router.add_route("*", "/{path:.*}", handler)
    return app


def refusing(answer: Callable[[], web.HTTPException], old: bool) -> web.Application:
    """Return an application that refuses all requests; `old`: as a car of the version before."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        raise answer()

    return always(refuse, *(() if old else (errors_as_pages,)))


@pytest.mark.parametrize(
    ("answer", "old", "reason"),
    [
        (lambda: refused(web.HTTPForbidden, FULL), False, FULL),
        (lambda: refused(web.HTTPForbidden, FULL), True, ENGLISH),
        (lambda: web.HTTPForbidden(text="x" * 999), True, CUT),
        (lambda: web.HTTPForbidden(text=" "), True, None),
    ],
)
async def test_refusal_of_a_car_of_this_version_or_the_one_before_is_named(
    answer: Callable[[], web.HTTPException], old: bool, reason: Text | None
) -> None:
    async with car_at(refusing(answer, old)) as url:
        with pytest.raises(StationError) as fault:
            await client.pair(url, "", "wrong", "office")
        assert fault.value.args == (SAYS(place=url, reason=reason or VERBATIM(text=403)),)
        async with asking(stranger(url)) as http:
            with pytest.raises(CarFault) as listed:
                await http.listing("", False)
    number: Text = VERBATIM(text=403)
    step = SAYS(place=number, reason=reason) if reason else number
    assert listed.value.args == (SAYS(place=url, reason=step),)


@pytest.mark.parametrize(
    ("body", "english"),
    [
        (b"{", "{"),
        (b"[" * 3000, "[" * 200),
        (b'{"text":' * 400, '{"text":' * 25),
        (b"{}" + b" " * 10**6, "{}"),
        (problem("no", SAYS(place="a", reason=FULL)), "no"),
        (problem("x" * 999, VERBATIM(text="x" * 999)), "x" * 200),
        (problem("no", BOMB), "no"),
    ],
)
async def test_malformed_nested_or_long_refusal_is_short_english(body: bytes, english: str) -> None:
    async with car_at(lying(body, status=403, kind=PROBLEM)) as url:
        with pytest.raises(StationError) as fault:
            await client.pair(url, "", "wrong", "office")
    assert fault.value.args == (SAYS(place=url, reason=VERBATIM(text=english)),)


def lying(
    answer: bytes | None, key: str | None = None, status: int = 200, kind: str = "text/plain"
) -> web.Application:
    """Return an application that answers all with `answer`; signed, if it has the key."""

    async def say(request: web.Request) -> web.StreamResponse:
        if answer is None:
            endless = web.StreamResponse()
            await endless.prepare(request)
            while True:
                await endless.write(bytes(1 << 16))
        nonce = request.headers.get(wire.NONCE, "")
        mac = wire.answer_mac(bytes.fromhex(key), nonce, answer) if key else "0" * 64
        return web.Response(body=answer, headers={wire.MAC: mac}, status=status, content_type=kind)

    return always(say)


LONG = b'{"car":"x","segments":[{"name":"%s","size":3}]}'


@pytest.mark.parametrize(
    ("answer", "key", "words"),
    [
        (b'{"car":"x","segments":[]}', None, "did not sign"),
        (b'{"car":"x","segments":[]}', "22" * 32, "did not sign"),
        (b"{}", KEY, "invalid answer of the car: not a valid Listing"),
        (b"[" * 5000, KEY, "invalid answer of the car: not a valid Listing"),
        (b'{"car":"\xff"', KEY, "invalid answer of the car: not a valid Listing"),
        (b'{"car":"x","segments":' + b"[" * 5000, KEY, "not a valid Listing"),
        (b'{"x":' * 5000, KEY, "invalid answer of the car: not a valid Listing"),
        (LONG % b"../../etc/passwd", KEY, "not a segment"),
        (LONG % (b"x" * 10_000), KEY, "not a segment"),
        (LONG.replace(b":3", b":-3") % NAME.encode(), KEY, "not a segment"),
        (LONG.replace(b":3", b":99999999999999") % NAME.encode(), KEY, "not a segment"),
        (
            LONG.replace(b"}]}", b'},{"name":"%s","size":3}],"more":true}')
            % (NAME.encode(), NAME.encode()),
            KEY,
            "not a segment",
        ),
        (LONG.replace(b"}]}", b'}],"more":true}') % NAME.encode(), KEY, "not a segment"),
        (None, KEY, "over 4000000 bytes"),
    ],
)
async def test_impostor_or_false_answer_is_a_fault_and_stores_nothing(
    tmp_path: Path, answer: bytes | None, key: str | None, words: str
) -> None:
    async with car_at(lying(answer, key)) as url:
        with pytest.raises(CarFault, match=words):
            await pull(stranger(url), tmp_path / "store")
    assert sorted(one.name for one in (tmp_path / "store").iterdir()) == [".fpvstation.json"]


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    asked = list[str]()

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with car_at(always(elsewhere)) as url:
        with pytest.raises(StationError, match="307"):
            await client.pair(url, "", "code", "office")
        async with asking(stranger(url)) as http:
            pieces = aiter(http.pieces(NAME, Sums(1, "0" * 64, ["0" * 64]), 0, 0))
            for answer in (http.listing("", False), anext(pieces), http.end()):
                with pytest.raises(CarFault, match="307"):
                    await answer
            await http.is_paired()
    assert len(asked) == 5 and "/elsewhere" not in asked


async def test_malformed_checksums_are_refused(tmp_path: Path) -> None:
    body = LONG.replace(b"}]}", b'}],"size":3,"sha256":"no","pieces":[]}')
    async with car_at(lying(body % NAME.encode(), KEY)) as url:
        done = await pull(stranger(url), tmp_path / "store")
        assert "checksums do not fit a file of 3 bytes" in str(done.bad[NAME]) and done.waiting == 1


async def test_unreachable_car_is_a_fault_with_its_address() -> None:
    with pytest.raises(CarFault, match="127.0.0.1:1"):
        await client.pair("http://127.0.0.1:1", "", "code", "office")
    with pytest.raises(CarFault, match="127.0.0.1:1"):
        await client.fingerprint_of("https://127.0.0.1:1")
    assert await client.fingerprint_of("http://127.0.0.1:1") == ""


async def test_deleted_segment_raises_gone_and_no_fault(folder: Path, tmp_path: Path) -> None:
    async with car_at(car_application(folder, stations_of(tmp_path))) as url:
        async with asking(await paired(url)) as http:
            with pytest.raises(SegmentGone):
                await http.sums(NAME.replace("0001", "0009"))
            with pytest.raises(SegmentGone):
                await http.receipt(NAME, "0" * 64)


async def test_car_too_old_for_stations_is_named(tmp_path: Path) -> None:
    async with car_at(web.Application()) as url:
        car = stranger(url)
        with pytest.raises(CarFault, match="update fpvcar on the car"):
            await pull(car, tmp_path / "store")
        async with asking(car) as http:
            with pytest.raises(CarFault, match="update fpvcar on the car"):
                await http.end()


async def test_dripping_piece_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is never silent, and the piece would never be complete."""
    monkeypatch.setattr(client, "PIECE_S", 0.2)

    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=206)
        answer.content_length = len(DATA)
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(b"x")
                await asyncio.sleep(0.01)
        return answer

    sums = Sums(len(DATA), "0" * 64, ["0" * 64] * 3)
    async with car_at(always(drip)) as url, asking(stranger(url)) as http, asyncio.timeout(20.0):
        with pytest.raises(CarFault, match="no answer in time"):
            async for _ in http.pieces(NAME, sums, 0, 2):
                raise AssertionError("no piece is whole")


@pytest.mark.parametrize("clock_us", [1, 10**15, wire.NUMBER_MOST - 1000])
async def test_station_goes_on_after_its_clock_was_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock_us: int
) -> None:
    stations = stations_of(tmp_path)
    async with car_at(car_application(folder, stations)) as url:
        car = await paired(url)
        async with asking(car) as http:
            assert await http.is_paired()
    await stations.save(0.0)
    monkeypatch.setattr(time, "time_ns", lambda: clock_us * 1000)
    stations = stations_of(tmp_path)  # the car has started again
    async with car_at(car_application(folder, stations)) as url:
        moved = msgspec.structs.replace(car, url=url)
        done = await pull(moved, tmp_path / "store")
        assert (done.stored, done.bad) == ([NAME, SECOND], {})


async def test_two_clients_of_a_station_pass_a_car_that_has_started_again(
    folder: Path, tmp_path: Path
) -> None:
    """Both are refused, and then continue with the same number: its newest one."""
    stations = stations_of(tmp_path)
    async with car_at(car_application(folder, stations)) as url:
        car = await paired(url)
        async with asking(car) as http:
            assert await http.is_paired()
    await stations.save(0.0)
    async with car_at(car_application(folder, stations_of(tmp_path))) as url:
        moved = msgspec.structs.replace(car, url=url)
        async with client.session(url, "") as one, client.session(url, "") as other:
            asked = (HttpCar(moved, session).certificate() for session in (one, other))
            answers = await asyncio.gather(*asked, return_exceptions=True)
    assert not any("403" in str(answer) for answer in answers)


async def test_unsigned_refusal_does_not_move_the_request_number() -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        raise web.HTTPForbidden(headers={wire.NEWEST: "9" * 16, wire.MAC: "0" * 64})

    async with car_at(always(refuse)) as url, asking(stranger(url)) as http:
        with pytest.raises(CarFault, match="403"):
            await http.sums(NAME)
        assert http._last_number < 9 * 10**15
