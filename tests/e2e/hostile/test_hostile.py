"""Hostile clients beside a driver and a viewer: neither is disturbed."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.memory import resident_mb
from testkit.driver import Driver, free, open_socket, set_off, sit_down
from testkit.harness import STRIP, RunningBench, started, wait_for
from testkit.network.attacks import ATTACKS
from websockets.exceptions import ConnectionClosed

from tests.e2e.hostile.fuzzers import FUZZERS

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.soak]

SHORT_S, LONG_S = 2.0, 60.0
SHORT = [name for name in (*ATTACKS, "fuzz") if name != "half_open"]
"""The fuzzers have a test of their own, test_fuzz.py; here a driver drives beside them."""
LONG = [pytest.param("half_open", marks=pytest.mark.long)]
"""Attack that waits for the 10 s after which idle connections are cut."""
GROWTH_MB = 16.0
PONG_S, WISH_S, GAP_S, GAPS_S = 0.1, 0.1, 0.4, 0.1
"""Limits for 95 of 100 pongs, wishes at the pin and gaps between two pictures; and for each gap:
the page greys a picture that is older."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBench]:
    """A bench whose camera costs little: the test measures the clients."""
    with started(tmp_path_factory.mktemp("bench"), STRIP) as running:
        recordings = running.state / "recordings"  # then all files are open
        wait_for(lambda: bool(list(recordings.glob("*.part"))), "it does not record")
        yield running


class Heard(list[dict[str, Any]]):
    """Messages that a driver received, with the time of each."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s: list[float] = []

    def append(self, message: dict[str, Any]) -> None:
        self.at_s.append(time.monotonic())
        super().append(message)


class Viewer(threading.Thread):
    """Viewer that reads /ws/video and keeps the time of each frame."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.at_s: list[float] = []
        self._socket = open_socket(port, "/ws/video?id=watcher-of-it-all")
        self.start()

    def run(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            for _ in self._socket:
                self.at_s.append(time.monotonic())

    def close(self) -> None:
        self._socket.close()
        self.join()


def gaps_s(moments: list[float]) -> list[float]:
    """Return the gaps, the longest last; a single gap of 99 s if no frame came."""
    gaps = [b - a for a, b in zip(moments, moments[1:], strict=False)]
    return sorted(gaps) or [99.0]


def p95(ordered: list[float]) -> float:
    return ordered[len(ordered) * 95 // 100]


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def start(name: str, port: int, seconds: float) -> "subprocess.Popen[str]":
    """Start one attack in a process of its own, so that it does not slow this driver's."""
    module = "tests.e2e.hostile.fuzzers" if name in FUZZERS else "testkit.network.attacks"
    return subprocess.Popen(
        [sys.executable, "-m", module, name, str(port), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
    )


@pytest.mark.parametrize("name", [*SHORT, *LONG])
def test_attack_disturbs_neither_driver_nor_viewer(
    bench: RunningBench,
    driver: Driver,
    soaking: bool,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The test is repeated once if `run` waited so long for a core that the wheels stopped."""
    try:
        attacked(bench, driver, soaking, name, capsys)
    except AssertionError:
        if (driver.state.get("stop") or {}).get("cause") != "wheels_stopped":
            raise
        with capsys.disabled():
            print(f"\n{name}: repeated: the wheels stood by themselves", end="")
        free(driver)
        attacked(bench, driver, soaking, name, capsys)


def attacked(
    bench: RunningBench,
    driver: Driver,
    soaking: bool,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Drive and watch during one attack, and check both."""
    run = bench.pid("run")
    viewer = Viewer(bench.port)
    wait_for(lambda: len(viewer.at_s) > 5, "no pictures")
    fds, memory_mb = descriptors(run), resident_mb(run)
    seconds = LONG_S if soaking else SHORT_S
    heard = driver.heard = Heard()
    first = len(viewer.at_s)
    driver.drive(0.3, 0.0)
    with bench.watch() as watch, start(name, bench.port, seconds) as attack:
        steers: list[float] = []
        while attack.poll() is None:
            driver.drive(0.3, 0.5 if len(steers) % 2 else -0.5)
            wanted = 2 if len(steers) % 2 else 3
            steers.append(
                wait_for(
                    lambda pin=wanted: watch.now.duties[pin] > 0.0,  # type: ignore
                    f"the wheel does not follow: {driver.state}",
                    2.0,
                    0.001,
                )
            )
            time.sleep(0.2)
        counts = (attack.stdout.read() if attack.stdout else "").strip()
    driver.drive(0.0, 0.0)
    messages = list(zip(heard.at_s, list(heard), strict=False))
    states = [(at_s, one) for at_s, one in messages if one["kind"] == "state"]
    pongs = sorted(at_s - one["t"] / 1000 for at_s, one in messages if one["kind"] == "pong")
    pictures, told = gaps_s(viewer.at_s[first:]), gaps_s([at_s for at_s, _ in states])
    steers.sort()
    with capsys.disabled():
        print(
            f"\n{name}: {counts}; p95 and worst in ms: pong {p95(pongs) * 1000:.0f} "
            f"{pongs[-1] * 1000:.0f}, wish to pin {p95(steers) * 1000:.0f} "
            f"{steers[-1] * 1000:.0f}, picture gap {p95(pictures) * 1000:.0f} "
            f"{pictures[-1] * 1000:.0f}, state gap {told[-1] * 1000:.0f}; run "
            f"{memory_mb:.1f} -> {resident_mb(run):.1f} MB, {fds} descriptors",
            end="",
        )
    assert attack.returncode == 0 and "'500'" not in counts
    if name == "half_open":
        assert "'silent closed': 100" in counts and "'slow closed': 100" in counts
    assert [one["stop"] for _, one in states if one["stop"]] == []
    assert all(one["role"] == "driver" for _, one in states)
    assert p95(pongs) < PONG_S and p95(steers) < WISH_S
    assert p95(pictures) < GAPS_S and max(pictures[-1], told[-1]) < GAP_S
    wait_for(lambda: descriptors(run) <= fds, f"more than {fds} descriptors", 20.0)
    assert resident_mb(run) < memory_mb + GROWTH_MB
    assert bench.pid("run") == run and "Traceback" not in bench.log()
    viewer.close()


def test_flood_of_drive_messages_by_watcher_moves_nothing(
    bench: RunningBench, driver: Driver
) -> None:
    with bench.watch() as watch, Driver(bench.port, name="Eve") as eve:
        wait_for(lambda: bool(eve.state), "no state")
        eve.sending = False
        for seq in range(10_000):
            eve.say_text(f'{{"kind":"drive","seq":{seq},"t":{seq},"throttle":1,"steer":1}}')
        wait_for(
            lambda: (
                {"not at the wheel", "too many messages"} <= {one["what"] for one in eve.errors()}
            ),
            "no errors",
        )
        assert not any(sample.driving for sample in watch.samples)
        assert driver.stop_cause() is None
        set_off(driver, watch)
        driver.drive(0.0, 0.0)


def test_driver_returns_through_a_crowd_of_connections(bench: RunningBench) -> None:
    """The car is full of watchers and of connections; its driver reloads the page."""
    with Driver(bench.port, client="the-driver-of-it-all") as driver:
        sit_down(driver)
    with start("crowd", bench.port, LONG_S) as attack:
        assert attack.stdout is not None
        assert attack.stdout.readline() == "crowded\n"
        with Driver(bench.port, client="the-driver-of-it-all") as driver:
            wait_for(lambda: driver.state.get("role") == "driver", "no seat", 3.0)
            free(driver)
            viewer = Viewer(bench.port)
            wait_for(lambda: len(viewer.at_s) > 5, "no pictures", 3.0)
            viewer.close()
            driver.drive(0.0, 0.0)
            driver.say(kind="release")
        attack.terminate()
        said = attack.communicate(timeout=30)[0]
    assert "'503'" in said, said
