"""A driven car of the bench at a broker: its states, its picture, and a stop at its motor pins."""

import io
from pathlib import Path

import pytest
from PIL import Image
from testkit.driver import Driver, free, set_off, sit_down
from testkit.harness import STRIP, started, wait_for
from testkit.smart_home.live_cars import LiveStation
from testkit.smart_home.mosquitto import Broker, listening

pytestmark = pytest.mark.e2e
STOP_S = 5.0
"""Limit for a stop by way of broker and station, on a busy machine: then it is dropped."""
DRIVEN = {"driver": "Ann", "reason": "driving", "stop": None, "wheels": "ok"}


def test_stop_command_stops_a_driven_car(tmp_path: Path) -> None:
    with started(tmp_path, STRIP) as bench, Broker(tmp_path / "broker") as broker:
        home = tmp_path / "station"
        home.mkdir()
        (home / "fpvcar").symlink_to(bench.state)
        station = LiveStation(home, f"--beside=http://127.0.0.1:{bench.port}")
        station.set(broker.port, stop=True, stills=True)
        with (
            listening(broker.port, "#") as listener,
            station,
            Driver(bench.port) as driver,
            bench.watch() as watch,
        ):
            sit_down(driver)
            free(driver)

            def told() -> dict[str, object]:
                return listener.newest("fpvcar/Plague/state")

            def drives() -> bool:
                if not watch.now.driving:  # a busy machine rightly stops it
                    free(driver)
                    set_off(driver, watch)
                return {**told(), **DRIVEN} == told()

            wait_for(drives, "no drive", 60.0, every_s=0.2)
            stills = "fpvcar/Plague/still"
            wait_for(lambda: bool(listener.messages(stills)), f"no still: {station.log}", 40.0)
            picture = Image.open(io.BytesIO(listener.messages(stills)[0].payload))
            assert picture.format == "JPEG" and picture.size == (640, 480)
            wait_for(drives, "no drive", 60.0, every_s=0.2)
            listener.publish("fpvcar/Plague/stop", "stop", expiry_s=5)
            wait_for(lambda: not watch.now.driving, "not stopped", STOP_S)
            wait_for(lambda: driver.stop_cause() == "estop", "no cause", 5.0)
            wait_for(lambda: told()["last_stop"] == "estop", "not told", 10.0)
            free(driver)  # the driver resumes, as after any page's stop
            station.kill()
            wait_for(
                lambda: listener.texts("fpvcar/Plague/presence")[-1] == "offline", "no will", 20.0
            )
