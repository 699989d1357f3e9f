"""Table "Who stops the car" as data: the part that fails, its failure, the part that must notice,
and the time limit. Tests and benchmark run the same rows.

Rows that need a browser are in browser_causes.py, those of a car on a PCA9685 in hat_causes.py,
those of `fpvcar doctor --move` in doctor_causes.py. No process can simulate a hanging kernel. The
collision guard is off unless a row says otherwise: it would stop a car at a wall before the row's
cause does.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fpvbench import soc as chip
from fpvcar.config import profiles
from fpvcar.hil import stop_causes
from fpvcar.hil.checks.stops import BUSY
from fpvcar.hil.driver import NO_ANSWER
from fpvcar.hil.stop_causes import BLOCKED_S, CLOSED_S, LATE_S, NOTICED_S, ONE_FRAME_S
from fpvcar.http.limits import BYTES_BURST, BYTES_PER_S
from fpvcar.runtime import paths
from testkit.driver import Driver, free, make_whole, sit_down
from testkit.harness import PinWatch, wait_for
from testkit.network.lan import Lan
from testkit.stops.ground import Ground, Scene
from testkit.stops.guarded import guarding
from testkit.stops.stopping import Busy, Cause, Run, one_stop, patiently, reason

PADDED_BYTES = 4000
SENSORS = profiles.load(paths.HARDWARE / "bench.toml").sensors


def signalled(unit: str, number: signal.Signals) -> Callable[[Scene], int]:
    """Return a failure: a unit of the bench, or its cameras, gets a signal."""

    def act(scene: Scene) -> int:
        if unit != "camera":
            return scene.bench.kill(unit, number)
        pids, now_ns = scene.bench.cameras(), time.monotonic_ns()
        for pid in pids:
            os.kill(pid, number)
        return now_ns

    return act


def _shared(
    name: str,
    fail: Callable[[Scene], int] | None = None,
    mend: Callable[[Scene], object] = lambda scene: None,
    **more: Any,
) -> Cause[Scene]:
    """Return the row of a cause that `fpvcar hil` measures, too: name, limit, and the stop cause
    that the car shows."""
    cause = stop_causes.BY_NAME[name]
    if fail is None:
        fail = signalled(cause.unit, cause.number)
    if cause.hung:
        mend = signalled(cause.unit, signal.SIGCONT)
    return Cause(name, cause.limit_s, cause.shown[0], fail, mend, **more)


def _done(act: Callable[[Scene], object]) -> Callable[[Scene], int]:
    def timed(scene: Scene) -> int:
        now_ns = time.monotonic_ns()
        act(scene)
        return now_ns

    return timed


def _only_pings(scene: Scene) -> None:
    scene.driver.sending = False


def _speak(scene: Scene) -> None:
    scene.driver.sending = True


def _let_go(scene: Scene) -> None:
    scene.driver.drive(0.0, 0.0)


def _without_power(scene: Scene) -> None:
    """Switch the VL53L0X ahead off; a second later `run` sets it up again."""
    power = SENSORS.tof["front"].power
    assert power is not None
    scene.bench.soc.pin[power].out = 0


def _echo_wire(level: int) -> Callable[[Scene], None]:
    """Set the echo wire of the HC-SR04 behind; without the wire the divider pulls the pin low."""

    def act(scene: Scene) -> None:
        scene.bench.soc.pin[SENSORS.ultrasound["rear"].echo].external = level

    return act


def _echo_wire_on(scene: Scene) -> None:
    _let_go(scene)
    _echo_wire(chip.FLOATING)(scene)


def _lying(scene: Scene) -> None:
    """Make the page claim that it has seen a state of this very moment."""
    scene.driver.claim = lambda: int(time.monotonic() * 1e6)


def _honest(scene: Scene) -> None:
    scene.driver.claim = None


def _frozen(scene: Scene) -> None:
    """Flood until the car slows the page down, with wishes for the moments at which the car will
    read them; then freeze."""
    at_once = int(BYTES_BURST) // PADDED_BYTES
    every_s = PADDED_BYTES / BYTES_PER_S
    at_s = [max(0, number - at_once) * every_s for number in range(at_once + 150)]
    scene.driver.push(scene.driver.prepare(at_s, PADDED_BYTES))


def _late(up_s: float = 0.0, down_s: float = 0.0) -> Callable[[Scene], int]:
    """Delay all further bytes on the link by these times."""

    def act(scene: Scene) -> None:
        link = scene.ground.link
        link.up_s, link.down_s = up_s, down_s

    return _done(act)


def _in_time(scene: Scene) -> None:
    scene.ground.link.up_s = scene.ground.link.down_s = 0.0
    scene.ground.link.cut()


def _live(scene: Scene) -> None:
    """Wait so long that the bench does not take the next exit for a crash loop."""
    time.sleep(1.1)


def _lan(scene: Scene) -> Lan:
    assert scene.ground.lan is not None
    return scene.ground.lan


def _by(name: str, grown_up: bool, *words: str) -> Callable[[Scene], int]:
    """Return a failure: another driver, connected before the clock starts, sends messages to the
    car."""

    def act(scene: Scene) -> int:
        code = scene.ground.grown_up_code if grown_up else ""
        with Driver(scene.bench.port, name=name, code=code) as other:
            wait_for(lambda: bool(other.state), "not welcome")
            now_ns = time.monotonic_ns()
            for word in words:
                other.say(kind=word)
            wait_for(
                lambda: reason(scene.bench) not in (None, NO_ANSWER), "not heard", every_s=0.005
            )
        return now_ns

    return act


CAUSES: tuple[Cause[Scene], ...] = (
    _shared(
        "finger lifts", _done(lambda s: s.driver.drive(0.0, 0.0)), logged="fpvcar.gate: neutral"
    ),
    Cause(
        "Wi-Fi loses every packet",
        NOTICED_S,
        "silence",
        _done(lambda s: _lan(s).lose()),
        lambda s: _lan(s).find(),
        way="lan",
    ),
    _shared(
        "half-open socket",
        _done(lambda s: s.ground.link.stall()),
        lambda s: s.ground.link.mend(),
        way="link",
    ),
    Cause("link late by 1.5 s, upwards", LATE_S, "silence", _late(up_s=1.5), _in_time, way="link"),
    Cause(
        "link late by 1.5 s, downwards", LATE_S, "silence", _late(down_s=1.5), _in_time, way="link"
    ),
    Cause(
        "link late by 0.5 s, both ways", LATE_S, "silence", _late(0.5, 0.5), _in_time, way="link"
    ),
    Cause("page lies about what it saw", LATE_S, "silence", _done(_lying), _honest),
    Cause("page frozen behind its own flood", LATE_S, "silence", _done(_frozen)),
    _shared("only heartbeats", _done(_only_pings), _speak),
    _shared("connection reset", _done(lambda s: s.ground.link.cut()), way="link"),
    Cause("socket closed", NOTICED_S, "silence", _done(lambda s: s.driver.abandon())),
    _shared("run killed", logged="fpvcar.wheels: stopped: closed"),
    Cause(
        "run ended",
        CLOSED_S,
        "handover",
        signalled("run", signal.SIGTERM),
        _live,
        logged="fpvcar.wheels: stopped: closed",
    ),
    _shared("run stopped", logged="fpvcar.wheels: deadline of", deaf=True),
    Cause(
        "run's loop blocked",
        BLOCKED_S,
        "wheels_stopped",
        signalled("run", signal.SIGUSR2),
        logged="fpvcar.wheels: deadline of",
    ),
    _shared("wheels killed", logged="the wheels process is absent"),
    Cause(
        "wheels ended",
        NOTICED_S,
        "wheels_stopped",
        signalled("wheels", signal.SIGTERM),
        _live,
        logged="fpvcar.wheels: stopped: exit",
    ),
    _shared("wheels stopped", logged="the wheels process is hung"),
    Cause(
        "wheels' loop blocked",
        NOTICED_S,
        "wheels_lost",
        signalled("wheels", signal.SIGUSR2),
        logged="the wheels process is hung",
    ),
    _shared("pigpiod killed", logged="fpvcar.wheels: lost the pins"),
    _shared("pigpiod hangs", logged="asked the helper"),
    _shared("camera hangs", logged="fpvcar.gate: stopped: blind"),
    _shared("camera killed", logged="fpvcar.gate: stopped: blind"),
    Cause(
        "range sensor without power", NOTICED_S, None, _done(_without_power), _let_go, guard="limit"
    ),
    Cause(
        "range sensor's wire off",
        NOTICED_S,
        None,
        _done(_echo_wire(0)),
        _echo_wire_on,
        throttle=-1.0,
        guard="limit",
    ),
    Cause(
        "only heartbeats, guard on", NOTICED_S, "silence", _done(_only_pings), _speak, guard="limit"
    ),
    Cause(
        "e-stop by a watcher",
        ONE_FRAME_S,
        "estop",
        _by("Bob", False, "estop"),
        logged="fpvcar.gate: stopped: estop Bob",
    ),
    Cause(
        "e-stop by a grown-up",
        ONE_FRAME_S,
        "estop_grown_up",
        _by("Mum", True, "estop"),
        _by("Mum", True, "resume"),
        logged="fpvcar.gate: stopped: estop_grown_up Mum",
    ),
    Cause(
        "a grown-up takes the wheel",
        ONE_FRAME_S,
        "handover",
        _by("Mum", True, "take"),
        lambda s: make_whole(s.bench),
        logged="Mum (127.0.0.1) took the wheel",
    ),
)


def row(of: str, **changes: Any) -> Cause[Scene]:
    """Return the row of this name, with changes for another car."""
    (cause,) = (cause for cause in CAUSES if cause.name == of)
    return replace(cause, **changes)


def possible(cause: Cause[Any]) -> bool:
    """Return whether the row can run here: network namespaces need root."""
    return cause.way != "lan" or os.geteuid() == 0


def run_one(ground: Ground, cause: Cause[Scene]) -> Run:
    """Measure one run of a row without a browser."""
    return patiently(lambda: _run_one(ground, cause))


def _run_one(ground: Ground, cause: Cause[Scene]) -> float:
    bench = ground.bench
    wait_for(lambda: reason(bench) != NO_ANSWER, "run did not come back", 15.0)
    driver = ground.driver(cause.way)

    def drive(watch: PinWatch) -> None:
        driver.drive(cause.throttle, 0.0)
        try:
            wait_for(lambda: watch.now.driving, "does not drive", every_s=0.001)
        except AssertionError as fault:
            said = reason(bench)
            if said in BUSY:
                raise Busy(f"{cause.name}: does not drive: {said}", said) from fault
            raise

    with driver:
        sit_down(driver)
        free(driver)
        code = ground.grown_up_code
        with guarding(bench, driver, code, cause.guard, cause.throttle):
            return one_stop(Scene(ground, driver), bench, cause, drive)
