"""A station at a real broker: states, events, discovery, wills and stops."""

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from testkit.harness import wait_for
from testkit.smart_home.home_assistant import faults_of
from testkit.smart_home.live_cars import LiveStation, live_cars
from testkit.smart_home.mosquitto import Broker, Listener, Redelivery, listening

from fpvcar.drive.gate import Cause
from fpvcar.mqtt.outbox import FILE
from fpvcar.runtime.texts import Text
from fpvcar.wire.telemetry import Battery, Recording
from fpvstation.fetch.cars import Cars

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[3]
CAR = "fpvcar/Car-0"
FULL = Recording(True, Text("card_full", "the card is full"), 9.0, free_mb=0, station=True)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def station(tmp_path: Path, broker: Broker) -> Iterator[LiveStation]:
    """Station that has its settings, and is not running yet."""
    station = LiveStation(tmp_path)
    station.set(broker.port)
    yield station
    if station.process is not None:
        station.end()


@pytest.fixture
def cars(station: LiveStation) -> Iterator[tuple[list[Any], Any]]:
    with live_cars(station.state, 2) as (cars, act):
        yield cars, act


@pytest.fixture
def listener(broker: Broker) -> Iterator[Listener]:
    with listening(broker.port, "#") as listener:
        yield listener


def present(listener: Listener, text: str = "online", car: str = CAR) -> None:
    """Wait for a presence."""
    topic = f"{car}/presence"
    wait_for(lambda: listener.texts(topic)[-1:] == [text], f"{car} is not {text}", 40.0)


def events(listener: Listener, count: int) -> list[dict[str, Any]]:
    """Wait for the events of a car; return them without id and time."""
    topic = f"{CAR}/event"
    wait_for(lambda: len(listener.texts(topic)) >= count, f"no {count} events", 40.0)
    return [
        {key: value for key, value in event.items() if key not in ("id", "time", "seconds")}
        for event in listener.objects(topic)
    ]


def held(car: Any) -> bool:
    """Return whether a stop holds the car."""
    return car.control.decision.latches.hold is not None


@pytest.mark.smoke
def test_drive_is_told_by_states_and_events(
    station: LiveStation, cars: Any, listener: Listener
) -> None:
    (car, _), act = cars
    station.start()
    present(listener)
    present(listener, car="fpvcar/Car-1")
    act(car.sit_down("Ann"))
    wait_for(lambda: listener.newest(f"{CAR}/state").get("driver") == "Ann", "no driver", 20.0)
    act(car.stop(Cause.SILENCE))  # has ended before the station asks again
    act(car.set(Battery(6.4, 0.5, 0.08, True, 0.01), FULL))
    act(car.stand_up())
    made = events(listener, 5)
    assert made[0] == {"event_type": "drive_began", "driver": "Ann"}
    assert {"event_type": "battery_low", "volts": 6.4, "battery": 8} in made
    assert {"event_type": "recording_full"} in made
    assert {"event_type": "drive_ended", "driver": "Ann"} in made
    assert [one["cause"] for one in made if one["event_type"] == "stop"] == ["silence"]
    wait_for(lambda: listener.newest(f"{CAR}/state")["last_stop"] == "silence", "no stop", 20.0)
    state = listener.newest(f"{CAR}/state")
    assert (state["battery"], state["distance"], state["stop"]) == (8, {"front": 0.5}, None)
    first, begun_s = len(listener.texts(f"{CAR}/state")), time.monotonic()
    wait_for(lambda: len(listener.texts(f"{CAR}/state")) >= first + 5, "too few states", 20.0)
    assert time.monotonic() - begun_s > 3.0, "more than one state a second without a change"
    assert not any(message.retain for message in listener.messages(f"{CAR}/state"))
    assert listener.messages(f"{CAR}/event")[0].qos == 1


def test_discovery_follows_the_rules_and_comes_again_to_a_new_home_assistant(
    station: LiveStation, cars: Any, listener: Listener, broker: Broker
) -> None:
    station.set(broker.port, stop=True)
    station.start()
    present(listener)
    topic = f"homeassistant/device/fpvcar_{Cars(station.state).find('Car-0').id}/config"
    wait_for(lambda: bool(listener.texts(topic)), "no discovery", 20.0)
    assert faults_of(listener.newest(topic)) == []
    assert listener.newest(topic)["components"]["stop"]["command_topic"] == f"{CAR}/stop"
    with listening(broker.port, topic, name="late") as late:
        wait_for(lambda: bool(late.texts(topic)), "not retained", 20.0)
    before = len(listener.texts(topic))
    listener.publish("homeassistant/status", "online")
    wait_for(lambda: len(listener.texts(topic)) > before, "not sent again", 20.0)


def test_forgotten_car_disappears(station: LiveStation, cars: Any, listener: Listener) -> None:
    station.start()
    present(listener)
    listed = Cars(station.state)
    topic = f"homeassistant/device/fpvcar_{listed.find('Car-0').id}/config"
    wait_for(lambda: bool(listener.texts(topic)), "no discovery", 20.0)
    listed.remove(listed.find("Car-0"))
    wait_for(lambda: listener.texts(topic)[-1] == "", "the device stays", 30.0)
    wait_for(lambda: listener.texts(f"{CAR}/presence")[-1] == "", "the presence stays", 30.0)
    present(listener, car="fpvcar/Car-1")


@pytest.mark.parametrize("how", ["kill", "end"])
def test_ended_station_leaves_its_cars_offline(
    station: LiveStation, cars: Any, listener: Listener, how: str
) -> None:
    station.start()
    present(listener)
    present(listener, car="fpvcar/Car-1")
    getattr(station, how)()
    present(listener, "offline")
    present(listener, "offline", car="fpvcar/Car-1")


def test_silent_car_is_offline_until_it_answers(
    station: LiveStation, cars: Any, listener: Listener
) -> None:
    (car, _), act = cars
    station.start()
    present(listener)
    act(car.close())
    present(listener, "offline")
    states = len(listener.texts(f"{CAR}/state"))
    act(car.open())
    present(listener)
    wait_for(lambda: len(listener.texts(f"{CAR}/state")) > states, "no state", 20.0)


def test_killed_station_continues_with_events_of_its_absence(
    station: LiveStation, cars: Any, listener: Listener
) -> None:
    (car, _), act = cars
    station.start()
    present(listener)
    act(car.sit_down("Ann"))
    assert [one["event_type"] for one in events(listener, 1)] == ["drive_began"]
    station.kill()
    for _ in range(3):
        act(car.stop(Cause.BLIND))
    act(car.stand_up())
    station.start()
    wait_for(
        lambda: any(one["event_type"] == "drive_ended" for one in events(listener, 1)), "no end", 40
    )
    once = {json.dumps(one) for one in events(listener, 3)}  # an event may come twice
    assert sorted(map(json.loads, once), key=lambda one: one["event_type"]) == [
        {"event_type": "drive_began", "driver": "Ann"},
        {"event_type": "drive_ended", "driver": "Ann"},
        {"event_type": "stop", "cause": "blind", "count": 3},
    ]


def test_stop_is_refused_unless_it_is_on(
    station: LiveStation, cars: Any, listener: Listener
) -> None:
    (car, _), _ = cars
    station.start()
    present(listener)
    listener.publish(f"{CAR}/stop", "stop")
    station.logs("stop refused: it is off; to allow it, set stop = true in [mqtt]")
    assert not held(car)


def test_stop_stops_its_car_only(
    station: LiveStation, cars: Any, listener: Listener, broker: Broker
) -> None:
    (car, other), _ = cars
    station.set(broker.port, stop=True)
    station.start()
    present(listener)
    listener.publish(f"{CAR}/stop", "drive")
    station.logs("payload b'drive' refused")
    assert not held(car)
    listener.publish(f"{CAR}/stop", "stop", expiry_s=5)
    wait_for(lambda: held(car), "not stopped", 20.0)
    assert car.control.decision.latches.hold.by == "workshop" and not held(other)
    assert events(listener, 1)[0]["cause"] == "estop"


def test_retained_missed_and_redelivered_stops_are_dropped(
    station: LiveStation, cars: Any, listener: Listener, broker: Broker
) -> None:
    (car, other), _ = cars
    listener.publish(f"{CAR}/stop", "stop", expiry_s=60)  # before the station comes
    listener.publish(f"{CAR}/stop", "stop", retain=True)
    with Redelivery(broker.port, f"{CAR}/stop") as way:
        station.set(way.port, stop=True)
        station.start()
        present(listener)
        present(listener, car="fpvcar/Car-1")
        listener.publish("fpvcar/Car-1/stop", "stop", retain=True)
        station.logs("Car-1: stop dropped: it is retained")
        listener.publish(f"{CAR}/stop", "stop")
        station.logs("Car-0: stop dropped: it is delivered again")
        assert way.marked.is_set()
        listener.publish("fpvcar/Car-1/stop", "stop")
        wait_for(lambda: held(other), "not stopped", 20.0)
    assert not held(car)
    assert station.log.count("Car-0: stop dropped") == 1


def certificate(folder: Path, name: str) -> Path:
    """Make a key, and a certificate for 127.0.0.1 that it signs itself."""
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key"]
    argv += ["-out", f"{folder}/{name}.crt", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(argv, check=True, capture_output=True)
    return folder / f"{name}.crt"


def documented(first: str) -> str:
    """Return the block of docs/ways-out/smart-home.md that begins with this line."""
    page = (ROOT / "docs/ways-out/smart-home.md").read_text()
    (block,) = [one for one in page.split("```text\n") if one.startswith(first)]
    return block.partition("```")[0]


def test_documented_broker_admits_only_its_users_over_tls(
    station: LiveStation, cars: Any, tmp_path: Path
) -> None:
    (car, other), _ = cars
    keys = tmp_path / "keys"
    keys.mkdir()
    ca, wrong, password = certificate(keys, "broker"), certificate(keys, "other"), keys / "password"
    for user in ("fpvstation", "homeassistant", "guest"):
        first = () if (keys / "passwd").exists() else ("-c",)
        argv = ["mosquitto_passwd", *first, "-b", f"{keys}/passwd", user, f"right {user}"]
        subprocess.run(argv, check=True)
    (keys / "acl").write_text(documented("user fpvstation"))
    lines = documented("listener 8883").replace("/etc/mosquitto/certs", str(keys)).splitlines()
    access = "\n".join(lines[1:]).replace("/etc/mosquitto", str(keys))
    password.write_text("wrong\n")
    secure: dict[str, Any] = {
        "user": "fpvstation",
        "password_file": str(password),
        "scheme": "mqtts",
        "stop": True,
    }
    with Broker(tmp_path / "secure", access) as broker:
        station.set(broker.port, ca=str(wrong), **secure)
        station.start()
        station.logs("certificate verify failed")
        station.end()
        station.set(broker.port, ca=str(ca), **secure)
        station.start()
        station.logs("refused: Not authorized: check [mqtt]")
        station.end()
        password.write_text("right fpvstation\n")
        station.start()
        station.logs(f"connected to mqtts://127.0.0.1:{broker.port}")
        tls: Any = {"ca": str(ca)}
        with (
            listening(
                broker.port, "#", name="homeassistant", password="right homeassistant", **tls
            ) as home,
            listening(broker.port, "#", name="guest", password="right guest", **tls) as guest,
        ):
            present(home)
            present(home, car="fpvcar/Car-1")
            wait_for(lambda: bool(home.newest(f"{CAR}/state")), "no state", 20.0)
            with suppress(RuntimeError):  # this broker closes the connection, others refuse
                guest.publish("fpvcar/Car-1/stop", "stop")
            home.publish(f"{CAR}/stop", "stop")
            wait_for(lambda: held(car), "not stopped", 20.0)
            assert events(home, 1)[0]["cause"] == "estop"
            assert not held(other) and guest.texts(f"{CAR}/state") == []
            with suppress(RuntimeError):
                home.publish(f"{CAR}/presence", "forged")
            states = len(home.texts(f"{CAR}/state"))
            wait_for(lambda: len(home.texts(f"{CAR}/state")) > states, "no state", 20.0)
            assert "forged" not in home.texts(f"{CAR}/presence")


def test_missing_files_of_the_settings_are_named(station: LiveStation, cars: Any) -> None:
    station.set(1, user="station", password_file="/nowhere/password")
    station.start()
    assert station.process is not None and station.process.wait(30.0) == 1
    station.process = None
    assert 'mqtt.password_file = "/nowhere/password"' in station.log


def test_missing_library_is_named_with_its_installation(tmp_path: Path) -> None:
    (tmp_path / "lacks" / "paho").mkdir(parents=True)
    (tmp_path / "lacks" / "paho" / "__init__.py").touch()
    station = LiveStation(tmp_path, env={"PYTHONPATH": str(tmp_path / "lacks")})
    station.set(1)
    station.start()
    assert station.process is not None and station.process.wait(30.0) == 1
    assert "paho.mqtt is not installed; MQTT needs it: pip install 'fpvcar[mqtt]'" in station.log


def test_lost_outbox_ends_neither_the_feed_nor_the_station(
    station: LiveStation, cars: Any, listener: Listener
) -> None:
    (car, _), act = cars
    station.start()
    present(listener)
    with closing(sqlite3.connect(station.state / FILE)) as file, file:
        file.execute("ALTER TABLE events RENAME TO lost")
    act(car.sit_down("Ann"))
    station.logs("Car-0: events not saved, retrying")
    act(car.stop(Cause.ESTOP))
    with closing(sqlite3.connect(station.state / FILE)) as file, file:
        file.execute("ALTER TABLE lost RENAME TO events")
    present(listener)
    assert [one["event_type"] for one in events(listener, 2)] == ["drive_began", "stop"]
