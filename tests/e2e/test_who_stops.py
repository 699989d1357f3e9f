"""The table "Who stops the car", row by row, at the emulator's pins.

Times are the design's own, with nothing added; `make bench` has the figures.
"""

import os
import signal
import socket
import time

import pytest

from tests.e2e.driver import Driver, free, sit_down, stand_up
from tests.e2e.harness import PinWatch, RunningBench, wait_for

pytestmark = pytest.mark.e2e


def forward(driver: Driver, watch: PinWatch) -> None:
    """Drives off and waits until the pins say so."""
    driver.drive(1.0, 0.0)
    wait_for(lambda: watch.now.driving, "the car does not drive", 5.0, every_s=0.001)


def test_the_finger_lifts(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = time.monotonic_ns()
        driver.drive(0.0, 0.0)
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.04
    assert driver.stop_cause() is None


def test_a_stop_brakes_and_then_lets_go(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        driver.drive(0.0, 0.0)
        wait_for(lambda: watch.now.duties == (0, 0, 0, 0), "does not let go")
        last = [sample.duties[:2] for sample in watch.samples[-3:]]
    assert last[-2] == (1.0, 1.0), f"no brake before letting go: {last}"


def test_silence(bench: RunningBench, driver: Driver) -> None:
    """Wi-Fi cut, browser frozen, half-open socket: nothing comes, nothing closes."""
    with bench.watch() as watch:
        forward(driver, watch)
        driver.pinging = driver.sending = False
        now_ns = time.monotonic_ns()
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
    wait_for(lambda: driver.stop_cause() == "silence", "no reason")
    with bench.watch() as watch:
        driver.wish, driver.sending = (1.0, 0.0), True
        time.sleep(0.3)
        assert not watch.now.driving, "a held stick may not go on by itself"
        driver.drive(0.0, 0.0)
        forward(driver, watch)


def test_heartbeats_alone_are_silence(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        driver.sending = False
        now_ns = time.monotonic_ns()
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
    driver.sending = True


def test_the_browser_is_closed(bench: RunningBench) -> None:
    with bench.watch() as watch:
        with Driver(bench.port) as driver:
            sit_down(driver)
            free(driver)
            forward(driver, watch)
            now_ns = time.monotonic_ns()
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
    with Driver(bench.port, client=driver.client) as back:
        wait_for(lambda: bool(back.state), "no state")
        assert back.state["role"] == "driver", "the same client has its seat back"
        stand_up(back)


def test_run_is_killed(bench: RunningBench) -> None:
    with bench.watch() as watch:
        driver = Driver(bench.port)
        sit_down(driver)
        free(driver)
        forward(driver, watch)
        now_ns = bench.kill("run")
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.05
    wait_for(driver.closed.is_set, "the socket of a dead run is open")
    driver.abandon()
    wait_for(lambda: answers(bench.port), "run did not come back", 15.0, 0.2)
    with Driver(bench.port, client=driver.client) as again:
        sit_down(again)
        free(again)
        stand_up(again)


def answers(port: int) -> bool:
    """Does somebody listen there?"""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_run_is_stopped(bench: RunningBench, driver: Driver) -> None:
    """SIGSTOP is what a blocked loop looks like from outside."""
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = bench.kill("run", signal.SIGSTOP)
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.15
        bench.kill("run", signal.SIGCONT)
        time.sleep(0.3)
        assert not watch.now.driving, "what queued meanwhile was replayed"
    wait_for(lambda: driver.stop_cause() == "wheels_stopped", "no reason")


def test_wheels_are_killed(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = bench.kill("wheels")
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
        wait_for(lambda: driver.stop_cause() == "wheels_lost", "no reason")
        time.sleep(0.5)
        assert not watch.now.driving, "the new wheels moved without a push"


def test_wheels_hang_and_come_back(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = bench.kill("wheels", signal.SIGSTOP)
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
        wait_for(lambda: driver.stop_cause() == "wheels_lost", "no reason")
        bench.kill("wheels", signal.SIGCONT)
        time.sleep(0.3)
        assert not watch.now.driving, "what queued meanwhile was replayed"


def test_pigpiod_dies(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = bench.kill("pigpiod")
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.50
        wait_for(lambda: driver.stop_cause() == "pins", "no reason")


def test_pigpiod_hangs(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        forward(driver, watch)
        now_ns = bench.kill("pigpiod", signal.SIGSTOP)
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.50
        wait_for(lambda: driver.stop_cause() == "pins", "no reason")


def test_the_camera_is_lost(bench: RunningBench, driver: Driver) -> None:
    """The bench's profile says blind = "stop"."""
    with bench.watch() as watch:
        forward(driver, watch)
        cameras = bench.cameras()
        now_ns = time.monotonic_ns()
        for pid in cameras:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.30
        wait_for(lambda: driver.stop_cause() == "blind", "no reason")
        for pid in cameras:
            os.kill(pid, signal.SIGCONT)


def test_an_estop_by_a_watcher(bench: RunningBench, driver: Driver) -> None:
    with Driver(bench.port, name="Bob") as watcher, bench.watch() as watch:
        forward(driver, watch)
        now_ns = time.monotonic_ns()
        watcher.say(kind="estop")
        wait_for(lambda: not watch.now.driving, "drives on")
        assert watch.stopped_after_s(now_ns) <= 0.04
        wait_for(lambda: driver.stop_cause() == "estop", "no reason")
        assert driver.state["stop"]["by"] == "Bob"
        driver.drive(0.0, 0.0)
        driver.drive(1.0, 0.0)
        time.sleep(0.2)
        assert not watch.now.driving, "neutral alone cleared an e-stop"
        watcher.say(kind="resume")
        wait_for(lambda: bool(watcher.errors()), "a watcher may not go on")


def test_without_the_stand_in_the_car_runs_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Why the stand-ins exist: DMA keeps the PWM when the daemon is gone."""
    bench = RunningBench(tmp_path_factory.mktemp("bare"), "--no-stand-in")
    try:
        bench.wait_ready()
        with Driver(bench.port) as driver, bench.watch() as watch:
            wait_for(lambda: driver.state.get("role") == "driver", "no seat")
            free(driver)
            forward(driver, watch)
            bench.kill("pigpiod", signal.SIGSTOP)
            time.sleep(1.0)
            assert watch.now.driving, "something else stopped the car"
    finally:
        bench.stop()
