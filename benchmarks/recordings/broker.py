"""Station at an MQTT broker: its CPU time for driven cars, and the delay of a stop's event."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testkit.harness import wait_for
from testkit.smart_home.live_cars import LiveStation, live_cars
from testkit.smart_home.mosquitto import Broker, listening

from benchmarks.rig import Settings
from benchmarks.rows import Aim, Result, row
from fpvcar.drive.gate import Cause

PART = "broker"
CARS, ROUNDS, ROUND_S, STOPS = 10, 5, 6.0, 20
SETTLED_S = 5.0
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process. proc(5): fields 14 and 15."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def shares(station: LiveStation) -> list[float]:
    """Return the share of a core that a running station takes, in %, once for each round."""
    assert station.process is not None
    time.sleep(SETTLED_S)
    values = []
    for _ in range(ROUNDS):
        used_s, begun_s = cpu_s(station.process.pid), time.monotonic()
        time.sleep(ROUND_S)
        spent_s = cpu_s(station.process.pid) - used_s
        values.append(100.0 * spent_s / (time.monotonic() - begun_s))
    return values


def rows(settings: Settings) -> Iterator[Result]:
    """Measure a station without a broker and with one, over the same cars."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        station = LiveStation(home)
        with Broker(home / "broker") as broker, live_cars(station.state, CARS) as (cars, act):
            for car in cars:
                act(car.sit_down("Ann"))
            (home / "station.toml").touch()
            with station:
                without = shares(station)
            station.set(broker.port)
            topic = f"fpvcar/{cars[0].title}/event"
            with listening(broker.port, "fpvcar/#") as listener, station:
                added = [each - min(without) for each in shares(station)]

                def delay_s() -> float:
                    """Return the seconds from a stop to its event."""
                    count = len(listener.messages(topic))
                    act(cars[0].stop(Cause.SILENCE))
                    return wait_for(lambda: len(listener.messages(topic)) > count, "no event")

                delays = [1000.0 * delay_s() for _ in range(STOPS)]
    yield row(PART, f"station: MQTT of {CARS} driven cars", "% of a core", added, Aim(median=2.0))
    yield row(PART, "a stop to its event at a subscriber", "ms", delays, note="checks each 0.1 s")
