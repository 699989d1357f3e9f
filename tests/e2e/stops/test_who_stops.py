"""Table "Who stops the car", row by row, at the emulator's pins.

Rows, ways to fail and times are in causes.py and browser_causes.py. The times are the design's own,
without additions; `make benchmark` has the figures. A late run is measured again: see `usual_s`.
"""

import json
import random
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from playwright.sync_api import Browser
from testkit.driver import Driver, free, set_off, sit_down, stand_up
from testkit.harness import STRIP, RunningBench, started, usual_s, wait_for
from testkit.stops import browser_causes, causes
from testkit.stops.ground import Ground, Scene, open_ground
from testkit.stops.stopping import SPOILT_MOST, Cause, Run, reason

from fpvcar.devices import backends
from fpvcar.hil.driver import NO_ANSWER
from fpvcar.runtime import watchdog
from fpvcar.wheels.client import MUTE_NS

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
RUNS, SOAK_RUNS = 1, 20


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The bench for the table. Only the part that a row breaks is started again, and its camera
    is back at once."""
    with open_ground(tmp_path_factory.mktemp("stops"), STRIP) as made:
        yield made
        print(made.bench.log())


@pytest.fixture(scope="module")
def bench(ground: Ground) -> RunningBench:
    """The table's bench, for the tests beside it."""
    return ground.bench


@pytest.fixture(scope="module")
def seat(ground: Ground, browser: Browser) -> Iterator[browser_causes.Seat]:
    """A browser at the wheel."""
    with browser_causes.Seat(ground, browser) as made:
        yield made


def rows(
    every: Sequence[Cause[Any]], smoke: Collection[str] = (), short: Collection[str] | None = None
) -> list[ParameterSet]:
    """Return a parameter for each row.

    Rows named in `smoke` are in `make test`, too. Only `make soak` measures those that are not in
    `short`.
    """
    needs_root = "network namespaces need root"
    return [
        pytest.param(
            cause,
            id=cause.name,
            marks=[
                pytest.mark.skipif(not causes.possible(cause), reason=needs_root),
                *([pytest.mark.smoke] if cause.name in smoke else []),
                *([pytest.mark.long] if short is not None and cause.name not in short else []),
            ],
        )
        for cause in every
    ]


SMOKE = (
    "finger lifts",
    "only heartbeats",
    "run killed",
    "run stopped",
    "run's loop blocked",
    "wheels killed",
    "wheels stopped",
    "pigpiod killed",
    "pigpiod hangs",
    "camera hangs",
    "range sensor without power",
    "link late by 1.5 s, upwards",
    "page lies about what it saw",
    "page frozen behind its own flood",
)
"""Rows for each failure of the first table in docs/safety.md: see tests/test_safety.py."""


Say = Callable[[str], None]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Return a function that prints a line also for a green test."""

    def aloud(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="")

    return aloud


@pytest.fixture
def count(soaking: bool) -> int:
    """Return the number of runs of a row."""
    return SOAK_RUNS if soaking else RUNS


def times_s(one_run: Callable[[], Run], count: int, cause: Cause[Any], say: Say) -> list[float]:
    """Return the time of each of a row's runs; few may have been repeated."""
    spoilt: list[str] = []

    def unspoilt_s() -> float:
        run = one_run()
        spoilt.extend(run.spoilt)
        return run.taken_s

    taken_s = [usual_s(unspoilt_s, cause.limit_s) for _ in range(count)]
    if spoilt:
        say(f"{cause.name}: {len(spoilt)} repeated: {', '.join(spoilt)}")
    most = max(SPOILT_MOST, count // 5)
    assert len(spoilt) <= most, f"{cause.name}: something else stops it: {spoilt}"
    return taken_s


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(causes.CAUSES, SMOKE))
def test_car_stops_in_time(ground: Ground, cause: Cause[Scene], count: int, say: Say) -> None:
    taken_s = times_s(lambda: causes.run_one(ground, cause), count, cause, say)
    assert max(taken_s) <= cause.limit_s, taken_s


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(browser_causes.CAUSES, ("key up", "browser frozen")))
def test_car_under_browser_stops_in_time(
    seat: browser_causes.Seat, cause: Cause[browser_causes.Seat], count: int, say: Say
) -> None:
    run = partial(browser_causes.run_one, seat, cause)
    taken_s = times_s(run, count, cause, say)
    assert max(taken_s) <= cause.limit_s, taken_s


def test_stop_brakes_and_then_lets_go(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        set_off(driver, watch)
        driver.drive(0.0, 0.0)
        wait_for(lambda: watch.now.duties == (0, 0, 0, 0), "does not let go")
        last = [sample.duties[:2] for sample in watch.samples[-4:]]
    # The emulated daemon clears the bits of one command one after the other, and a sample may fall
    # between them.
    assert (1.0, 1.0) in last[-3:-1], f"no brake before letting go: {last}"


def test_neutral_wish_after_silence_resumes_driving(bench: RunningBench, driver: Driver) -> None:
    with bench.watch() as watch:
        set_off(driver, watch)
        driver.sending = False
        wait_for(lambda: driver.stop_cause() == "silence", "no reason")
        driver.sending = True
        time.sleep(0.3)
        assert not watch.now.driving, "a held stick may not go on by itself"
        driver.drive(0.0, 0.0)
        set_off(driver, watch)


def test_reconnecting_client_has_its_seat_back(bench: RunningBench) -> None:
    with bench.watch() as watch, Driver(bench.port) as driver:
        sit_down(driver)
        free(driver)
        set_off(driver, watch)
    with Driver(bench.port, client=driver.client) as back:
        wait_for(lambda: bool(back.state), "no state")
        assert back.state["role"] == "driver"
        stand_up(back)


def test_neutral_alone_never_clears_an_estop(bench: RunningBench, driver: Driver) -> None:
    with Driver(bench.port, name="Bob") as watcher, bench.watch() as watch:
        set_off(driver, watch)
        watcher.say(kind="estop")
        wait_for(lambda: driver.stop_cause() == "estop", "no reason")
        assert driver.state["stop"]["by"] == "Bob"
        driver.drive(0.0, 0.0)
        driver.drive(1.0, 0.0)
        time.sleep(0.2)
        assert not watch.now.driving
        watcher.say(kind="resume")
        wait_for(lambda: bool(watcher.errors()), "a watcher may not go on")
        assert driver.stop_cause() == "estop"


@pytest.mark.soak
def test_ten_thousand_old_commands_move_nothing(bench: RunningBench, soaking: bool) -> None:
    """The commands are stale, doubled and reordered full throttle. A tenth of them (all in `make
    soak`) come no faster than the car checks each of them; the others as fast as possible."""
    dice, last, slow = random.Random(1), 1_000_000, 10_000 if soaking else 1_000
    stale_ms = 0.0
    with Driver(bench.port) as driver, bench.watch() as watch:
        sit_down(driver)
        free(driver)
        driver.sending = False
        for number in range(10_000):
            now_ms = time.monotonic() * 1000.0
            if number % 50 == 0:  # the measure of this link; nothing holds the car
                last += 1
                drive(driver, last, now_ms, 0.0)
            if number % 3 == 0:
                last += 1
                stale_ms = now_ms - 200.0 - dice.random() * 1e6
                drive(driver, last, stale_ms, 1.0)
            elif number % 3 == 1:  # doubled: if there are too many, the first may be skipped
                drive(driver, last, stale_ms, 1.0)
            else:  # from before the first; its time looks fresh
                drive(driver, dice.randrange(1_000_000), now_ms, 1.0)
            time.sleep(0.0045 if number < slow else 0.0)
        assert driver.stop_cause() is None, "it was not the commands that were refused"
        time.sleep(0.3)
        assert not any(sample.driving for sample in watch.samples)


def drive(driver: Driver, seq: int, t_ms: float, throttle: float) -> None:
    """Send one command with a number and a time of its own."""
    driver.say(kind="drive", seq=seq, t=t_ms, throttle=throttle, steer=0.0)


def test_blocked_run_loop_is_restarted_by_watchdog(bench: RunningBench) -> None:
    """`wheels` stop the car (row "run's loop blocked"); the watchdog brings the service back."""
    with Driver(bench.port) as driver, bench.watch() as watch:
        sit_down(driver)
        free(driver)
        set_off(driver, watch)
        said, pid = len(bench.log()), bench.pid("run")
        bench.kill("run", signal.SIGUSR1)
        wait_for(lambda: not watch.now.driving, "drives on")
        wait_for(lambda: "run ended (70)" in bench.log()[said:], "no watchdog")
        assert "_block_for_good" in bench.log()[said:], "the stacks are not in the log"
    wait_for(lambda: reason(bench) == "handover", "run did not come back", 15.0)
    assert bench.pid("run") != pid


def test_killed_wheels_leave_the_pin_daemon_running(bench: RunningBench, driver: Driver) -> None:
    """The daemon's restart would cost sensors, buttons and 4 s."""
    pid, said = bench.pid("pigpiod"), len(bench.log())
    with bench.watch() as watch:
        set_off(driver, watch)
        bench.kill("wheels", signal.SIGKILL)
        wait_for(lambda: not watch.now.driving, "drives on")
        wait_for(lambda: "gate: wheels: ok" in bench.log()[said:], "no wheels", 10.0)
        time.sleep(MUTE_NS / 1e9 + backends.PROOF_S)
    assert bench.pid("pigpiod") == pid, bench.log()[said:]


@pytest.mark.smoke
def test_grown_up_settings_outlive_a_killed_run(ground: Ground) -> None:
    """After `run` is killed, the grown-up's stop holds, and limit and guard are no looser."""
    bench, mums = ground.bench, ground.grown_up_code
    with Driver(bench.port, name="Mum", code=mums) as mum:
        wait_for(lambda: bool(mum.state), "not welcome")
        mum.say(kind="limit", throttle=0.3)
        mum.say(kind="guard", mode="warn")
        mum.say(kind="estop")
        kept = bench.state / "kept.json"
        wait_for(lambda: kept.exists() and b"Mum" in kept.read_bytes(), "not kept")
    bench.kill("run")
    wait_for(lambda: reason(bench) == "estop_grown_up", "it forgot", 15.0)
    with Driver(bench.port) as ann, bench.watch() as watch:
        sit_down(ann)
        assert (ann.state["limit"], ann.state["guard"]["mode"]) == (0.3, "warn")
        ann.say(kind="resume")
        wait_for(lambda: bool(ann.errors()), "only a grown-up goes on")
        ann.drive(0.0, 0.0)
        ann.drive(1.0, 0.0)
        time.sleep(0.2)
        assert not watch.now.driving
        stand_up(ann)
    with Driver(bench.port, name="Mum", code=mums) as mum:
        wait_for(lambda: bool(mum.state), "not welcome")
        mum.say(kind="limit", throttle=1.0)
        mum.say(kind="guard", mode="off")
        mum.say(kind="resume")
        wait_for(lambda: json.loads(kept.read_bytes()).keys() == {"car"}, "still kept")


def test_run_paused_beyond_watchdog_patience_goes_on(bench: RunningBench) -> None:
    """The watchdog does not bite for that, as after a machine that slept."""
    pid = bench.pid("run")
    bench.kill("run", signal.SIGSTOP)
    time.sleep(watchdog.PATIENCE_S + 1.5)
    bench.kill("run", signal.SIGCONT)
    wait_for(lambda: reason(bench) != NO_ANSWER, "run is deaf")
    time.sleep(1.0)
    assert bench.pid("run") == pid


def test_car_runs_on_without_the_stand_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The test gives the reason for the stand-ins: DMA keeps the PWM when the daemon is gone."""
    with (
        started(tmp_path_factory.mktemp("bare"), "--no-stand-in", STRIP) as bare,
        Driver(bare.port) as driver,
        bare.watch() as watch,
    ):
        wait_for(lambda: driver.state.get("role") == "driver", "no seat")
        free(driver)
        set_off(driver, watch)
        bare.kill("pigpiod", signal.SIGSTOP)
        time.sleep(1.0)
        assert watch.now.driving, "something else stopped the car"
