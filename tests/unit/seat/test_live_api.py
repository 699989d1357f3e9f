"""Route /api/station/live and stop: who may, and when the car answers."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from testkit.base_station.station import signature
from testkit.smart_home.live_cars import LiveCar

from fpvcar.drive.gate import Cause
from fpvcar.seat import live_api
from fpvcar.wire.station import BASE, Live, Pairing, ordered_nonce
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.client import HttpCar, session
from fpvstation.fetch.pull import CarFault


@pytest.fixture
def paired(tmp_path: Path) -> tuple[LiveCar, Car]:
    car, cars = LiveCar(tmp_path / "car", "Plague", 1), Cars(tmp_path)
    car.pair(cars)
    return car, cars.all()[0]


async def test_live_answers_at_once_without_a_known_change(paired: tuple[LiveCar, Car]) -> None:
    car, station = paired
    await car.open()
    async with session(station.url, "") as client:
        live = await HttpCar(station, client).live("")
    assert (live.driver, live.stop, live.reason) == (None, "handover", "nobody")
    assert live.battery and live.battery.share == 0.6 and live.ranges[0].name == "front"
    assert live.stops["estop"] == 0 and "handover" not in live.stops
    await car.close()


async def test_live_waits_for_a_change_and_misses_none(paired: tuple[LiveCar, Car]) -> None:
    car, station = paired
    await car.open()
    async with session(station.url, "") as client:
        http = HttpCar(station, client)
        first = await http.live("")
        begun_s = time.monotonic()
        same = await http.live(first.change)
        assert time.monotonic() - begun_s >= 0.8 and same.change == first.change
        waiting = asyncio.create_task(http.live(first.change))
        await asyncio.sleep(0.05)
        await car.sit_down("Ann")
        assert (await waiting).driver == "Ann"
        # ends between two requests
        await car.stop(Cause.SILENCE)
        last = await http.live(waiting.result().change)
        assert last.stops["silence"] == 1 and last.run == first.run
    await car.close()


async def test_station_stops_the_car_as_any_page_would(paired: tuple[LiveCar, Car]) -> None:
    car, station = paired
    await car.open()
    async with session(station.url, "") as client:
        await HttpCar(station, client).stop()
    hold = car.control.decision.latches.hold
    assert hold is not None and (hold.cause, hold.by) == (Cause.ESTOP, "workshop")
    assert car.control.resume(grown_up=False)
    await car.close()


async def test_unpaired_and_repeated_requests_are_refused(paired: tuple[LiveCar, Car]) -> None:
    car, station = paired
    await car.open()
    pairing = Pairing("Plague", station.id, station.station, station.key)
    async with session(station.url, "") as client:
        for method, path in (("GET", "/live"), ("POST", "/stop")):
            # as by a proxy on the car: the request came from elsewhere
            elsewhere = {"X-Forwarded-For": "192.168.1.9"}
            async with client.request(method, BASE + path, headers=elsewhere) as answer:
                assert answer.status == 401
        headers = signature(pairing, "POST", "/stop", ordered_nonce(1, "0" * 11))
        forged = {**headers, "X-Mac": "0" * 64}
        async with client.post(BASE + "/stop", headers=forged) as answer:
            assert answer.status == 401
        assert car.control.decision.latches.hold is None
        async with client.post(BASE + "/stop", headers=headers) as answer:
            assert answer.status == 204
        assert car.control.resume(grown_up=False)
        async with client.post(BASE + "/stop", headers=headers) as answer:
            assert answer.status == 403
    assert car.control.decision.latches.hold is None
    await car.close()


async def test_car_of_the_version_before_is_named(tmp_path: Path) -> None:
    from testkit.base_station.station import ask_car, stations_of
    from testkit.base_station.station import paired as pair

    async with ask_car(tmp_path, stations_of(tmp_path)) as client:
        made = await pair(client)
        url = str(client.make_url("")).rstrip("/")
        old = Cars(tmp_path).add(made, url, "")
        async with session(url, "") as requests:
            with pytest.raises(CarFault, match="update fpvcar on the car"):
                await HttpCar(old, requests).live("")
            assert (await HttpCar(old, requests).listing("", False)).segments == []


async def test_program_on_this_machine_needs_no_signature(paired: tuple[LiveCar, Car]) -> None:
    car, station = paired
    await car.open()
    async with session(station.url, "") as client:
        async with client.get(BASE + "/live") as answer:
            assert answer.status == 200 and "X-Mac" not in answer.headers
            live = msgspec.json.decode(await answer.read(), type=Live)
        assert (live.id, live.station) == (car.list.car, "")
        await HttpCar(station, client).live("")
        async with client.get(BASE + "/live") as answer:
            live = msgspec.json.decode(await answer.read(), type=Live)
        assert live.station == "workshop"
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Forwarded": "for=1.2.3.4"}):
            async with client.post(BASE + "/stop", headers=headers) as answer:
                assert answer.status in (401, 403)
        assert car.control.decision.latches.hold is None
        async with client.post(BASE + "/stop") as answer:
            assert answer.status == 204
    hold = car.control.decision.latches.hold
    assert hold is not None and (hold.cause, hold.by) == (Cause.ESTOP, "MQTT")
    assert car.control.resume(grown_up=False)
    await car.close()


async def test_station_that_asks_no_more_publishes_no_more(
    paired: tuple[LiveCar, Car], monkeypatch: pytest.MonkeyPatch
) -> None:
    car, station = paired
    await car.open()
    monkeypatch.setattr(live_api, "PUBLISHED_S", 0.2)
    async with session(station.url, "") as client:
        await HttpCar(station, client).live("")
        await asyncio.sleep(0.3)
        async with client.get(BASE + "/live") as answer:
            assert msgspec.json.decode(await answer.read(), type=Live).station == ""
    await car.close()
