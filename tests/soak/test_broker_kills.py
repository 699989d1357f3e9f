"""A broker is killed three times while cars stop: every event arrives. `make soak` has 30 cars."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.smart_home.live_cars import LiveStation, live_cars
from testkit.smart_home.mosquitto import Broker, Listener, listening

from fpvcar.drive.gate import Cause

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
CAUSES = (Cause.SILENCE, Cause.BLIND, Cause.ESTOP)
KILLS, AWAY_S = 3, 2.0


def arrived(listener: Listener, count: int) -> dict[int, tuple[str, int]]:
    """Return car and stops of each event that has arrived, by its number."""
    return {
        event["id"]: (f"Car-{number}", event.get("count", 1))
        for number in range(count)
        for event in listener.objects(f"fpvcar/Car-{number}/event")
    }


def test_events_survive_three_kills_of_the_broker(tmp_path: Path, soaking: bool) -> None:
    count, span_s = (30, 60.0) if soaking else (4, 6.0)
    dice, made, station = random.Random(1), Counter[str](), LiveStation(tmp_path)
    with Broker(tmp_path / "broker") as broker, live_cars(station.state, count) as (cars, act):
        station.set(broker.port)
        with listening(broker.port, "fpvcar/#") as listener, station:
            presences = [f"fpvcar/{car.title}/presence" for car in cars]

            def present() -> bool:
                return all("online" in listener.texts(topic) for topic in presences)

            wait_for(present, "cars are missing", 60.0)
            for kill in range(KILLS + 1):
                until_s = time.monotonic() + span_s / (KILLS + 1)
                while time.monotonic() < until_s:
                    car = dice.choice(cars)
                    act(car.stop(dice.choice(CAUSES)))
                    made[car.title] += 1
                    time.sleep(0.5 / count)
                if kill < KILLS:
                    broker.kill()
                    for car in cars:
                        act(car.stop(Cause.BLIND))
                        made[car.title] += 1
                    time.sleep(AWAY_S)
                    broker.start()

            def complete() -> bool:
                told = Counter[str]()
                for title, stops in arrived(listener, count).values():
                    told[title] += stops
                return told == made

            wait_for(complete, "events are missing", 120.0, every_s=0.5)
            numbers = arrived(listener, count).keys()
            assert set(numbers) == set(range(1, max(numbers) + 1))
            print(f"{sum(made.values())} stops in {len(numbers)} events of {count} cars")
