"""`fpvcar mqtt`: a car without a station at a real broker, and beside a station."""

import io
import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from testkit.driver import Driver, free, set_off, sit_down
from testkit.harness import STRIP, started, wait_for
from testkit.smart_home.home_assistant import faults_of
from testkit.smart_home.live_cars import LiveCard, LiveStation, live_cars
from testkit.smart_home.mosquitto import Broker, Listener, listening

from fpvcar.drive.gate import Cause
from fpvstation.fetch.cars import Cars

pytestmark = pytest.mark.e2e
CAR = "fpvcar/Car-0"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def listener(broker: Broker) -> Iterator[Listener]:
    with listening(broker.port, "#") as listener:
        yield listener


@pytest.fixture
def cars(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """A car, paired with the station whose state is in this folder, and its event loop."""
    state = tmp_path / "fpvstation"
    state.mkdir(mode=0o700)
    with live_cars(state, 1) as ((car,), act):
        yield car, act


def present(listener: Listener, text: str = "online") -> None:
    """Wait for a presence."""
    topic = f"{CAR}/presence"
    wait_for(lambda: listener.texts(topic)[-1:] == [text], f"not {text}", 40.0)


def events(listener: Listener) -> list[str]:
    """Return the kinds of all events so far, without those that came twice."""
    ids = {event["id"]: event["event_type"] for event in listener.objects(f"{CAR}/event")}
    return list(ids.values())


def held(car: Any) -> bool:
    """Return whether a stop holds the car."""
    return car.control.decision.latches.hold is not None


def test_card_publishes_drive_and_device_like_a_station(
    tmp_path: Path, cars: Any, broker: Broker, listener: Listener
) -> None:
    car, act = cars
    with LiveCard(tmp_path, car.port, car.title, broker.port) as card:
        present(listener)
        topic = f"homeassistant/device/fpvcar_{car.list.car}/config"
        wait_for(lambda: bool(listener.texts(topic)), "no discovery", 20.0)
        payload = listener.newest(topic)
        assert faults_of(payload) == []
        assert payload["device"]["configuration_url"].startswith("https://Car-0.local:")
        act(car.sit_down("Ann"))
        act(car.stop(Cause.SILENCE))
        wait_for(lambda: events(listener) == ["drive_began", "stop"], "no events", 20.0)
        wait_for(lambda: listener.newest(f"{CAR}/state").get("driver") == "Ann", "no driver", 20.0)
        assert listener.newest(f"{CAR}/state")["last_stop"] == "silence"
        listener.publish(f"{CAR}/stop", "stop")
        card.logs("stop refused: it is off; to allow it, set stop = true in [mqtt]")
        assert not held(car)
        card.kill()
        present(listener, "offline")


def test_events_survive_broker_and_card(
    tmp_path: Path, cars: Any, broker: Broker, listener: Listener
) -> None:
    car, act = cars
    with LiveCard(tmp_path, car.port, car.title, broker.port) as card:
        present(listener)
        broker.kill()
        act(car.sit_down("Ann"))
        card.logs("retrying")
        wait_for(lambda: _saved(card) == 1, "not saved", 20.0)
        card.kill()
        act(car.stop(Cause.BLIND))
        act(car.stand_up())
        card.start()
        wait_for(lambda: _saved(card) == 3, "not saved", 20.0)
        broker.start()
        wait_for(lambda: len(events(listener)) == 3, f"{card.log}", 90.0)
    assert events(listener) == ["drive_began", "drive_ended", "stop"]


def _saved(card: LiveCard) -> int:
    """Return the number of events in the card's outbox."""
    with closing(sqlite3.connect(card.state / "mqtt.sqlite")) as file:
        (count,) = file.execute("SELECT count(*) FROM events").fetchone()
    return int(count)


def test_stop_of_the_moment_stops_and_retained_or_foreign_text_does_not(
    tmp_path: Path, cars: Any, broker: Broker, listener: Listener
) -> None:
    car, _ = cars
    listener.publish(f"{CAR}/stop", "stop", retain=True)  # before the card comes
    with LiveCard(tmp_path, car.port, car.title, broker.port, stop=True) as card:
        present(listener)
        listener.publish(f"{CAR}/stop", "drive")
        card.logs("payload b'drive' refused")
        listener.publish(f"{CAR}/stop", "stop", retain=True)
        card.logs("stop dropped: it is retained")
        assert not held(car)
        listener.publish(f"{CAR}/stop", "stop", expiry_s=5)
        wait_for(lambda: held(car), "not stopped", 20.0)
    assert car.control.decision.latches.hold.by == "MQTT"
    present(listener, "offline")


def test_card_is_silent_while_a_station_publishes_the_car(
    tmp_path: Path, cars: Any, broker: Broker, listener: Listener
) -> None:
    car, act = cars
    station = LiveStation(tmp_path)
    station.set(broker.port)
    with LiveCard(tmp_path, car.port, car.title, broker.port) as card:
        present(listener)
        topic = f"homeassistant/device/fpvcar_{car.list.car}/config"
        wait_for(lambda: bool(listener.texts(topic)), "no discovery", 20.0)
        own = listener.newest(topic)["components"]
        with station:
            card.logs('base station "workshop" publishes this car')
            wait_for(lambda: f"127.0.0.1:{car.port}" in _url(listener, topic), "no station", 20.0)
            assert listener.newest(topic)["components"] == own
            act(car.sit_down("Ann"))
            act(car.stop(Cause.SILENCE))
            wait_for(lambda: len(listener.objects(f"{CAR}/event")) >= 2, "no events", 20.0)
            states = len(listener.texts(f"{CAR}/state"))
            wait_for(lambda: len(listener.texts(f"{CAR}/state")) > states + 3, "no states", 20.0)
            assert listener.texts(f"{CAR}/presence")[-1] == "online"
            assert Cars(station.state).find("Car-0").id == car.list.car
        present(listener, "offline")
        present(listener)  # the card again
        act(car.stand_up())
        wait_for(lambda: "drive_ended" in _kinds(listener), "no end", 20.0)
    assert sorted(_kinds(listener)) == ["drive_began", "drive_ended", "stop"]


def _url(listener: Listener, topic: str) -> str:
    return str(listener.newest(topic)["device"]["configuration_url"])


def _kinds(listener: Listener) -> list[str]:
    """Return the kinds of all events, also of those that two publishers sent."""
    return [event["event_type"] for event in listener.objects(f"{CAR}/event")]


def test_card_of_a_driven_car_shows_it_and_stops_it(tmp_path: Path, broker: Broker) -> None:
    with started(tmp_path, STRIP) as bench:
        card = LiveCard(tmp_path, bench.port, "Plague", broker.port, stop=True, stills=True)
        with (
            listening(broker.port, "#") as listener,
            card,
            Driver(bench.port) as driver,
            bench.watch() as watch,
        ):
            sit_down(driver)
            free(driver)

            def drives() -> bool:
                if not watch.now.driving:  # a busy machine rightly stops it
                    free(driver)
                    set_off(driver, watch)
                state = listener.newest("fpvcar/Plague/state")
                return (state.get("driver"), state.get("reason")) == ("Ann", "driving")

            wait_for(drives, "no drive", 60.0, every_s=0.2)
            stills = "fpvcar/Plague/still"
            wait_for(lambda: bool(listener.messages(stills)), f"no still: {card.log}", 40.0)
            picture = Image.open(io.BytesIO(listener.messages(stills)[0].payload))
            assert picture.format == "JPEG" and picture.size == (640, 480)
            wait_for(drives, "no drive", 60.0, every_s=0.2)
            listener.publish("fpvcar/Plague/stop", "stop", expiry_s=5)
            wait_for(lambda: not watch.now.driving, "not stopped", 5.0)
            wait_for(lambda: driver.stop_cause() == "estop", "no cause", 5.0)
            free(driver)  # the driver resumes, as after any page's stop
            assert card.process is not None
            card.process.send_signal(signal.SIGINT)
            assert card.process.wait(20.0) == 0
            card.process = None
            presence = "fpvcar/Plague/presence"
            wait_for(lambda: listener.texts(presence)[-1] == "offline", "no will", 20.0)
            assert json.loads(listener.texts("fpvcar/Plague/state")[-1])["viewers"] >= 1


def test_absent_car_and_wrong_settings_are_named(tmp_path: Path, broker: Broker) -> None:
    with LiveCard(tmp_path, 1, "Plague", broker.port) as card:
        card.logs("http://127.0.0.1:1: Connection refused: expected fpvcar run there")
    (tmp_path / "lacks" / "paho").mkdir(parents=True)
    (tmp_path / "lacks" / "paho" / "__init__.py").touch()
    for more, reason in (
        ({"broker": "nas"}, 'mqtt.broker = "nas" refused: expected mqtts://HOST'),
        ({"broker": ""}, "the profile names no broker; for example, for Home Assistant:"),
        ({"user": "a", "password_file": "/nowhere/p"}, 'mqtt.password_file = "/nowhere/p"'),
        ({}, "paho is not installed; sudo apt install python3-paho-mqtt, or pip install"),
    ):
        card = LiveCard(tmp_path, 1, "Plague", broker.port, **more)
        if not more:
            card.env["PYTHONPATH"] = str(tmp_path / "lacks")
        card.start()
        assert card.process is not None and card.process.wait(30.0) == 2, card.log
        card.process = None
        assert reason in card.log
