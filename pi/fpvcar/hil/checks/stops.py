"""Stop checks: each cause that a program can produce, timed at the pins.

The limits are those of docs/safety.md, "What fails, who notices, how soon".
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals

from fpvcar.hil.driver import NO_ANSWER, SEAT_S, Driver, stop_cause, wait_for
from fpvcar.hil.pin_recorder import Scope
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, InvalidMeasurement, Rig

STAYS_S = 0.12
"""Seconds for which the car is watched after the cause has been mended."""
TICK_S = 0.04
"""Random delay before the failure, so that the suite never keeps step with the car."""
GONE_S = 3.0
BUSY = ("blind", "silence", "wheels_stopped", "wheels_lost", "pins")
"""Causes that a car reports when its processes waited too long for a core."""
SOURCE = "docs/safety.md"


@dataclass(frozen=True)
class Cause:
    """Cause of a stop. `fail` returns CLOCK_MONOTONIC in ns just before; `causes`
    lists the stop causes that the car may then report, (None,) if it is not held."""

    fail: Callable[[Rig, Driver], int]
    causes: tuple[str | None, ...]
    mend: Callable[[Rig, Driver], object] = lambda rig, driver: None


def _signalled(unit: str, number: Signals) -> Callable[[Rig, Driver], int]:
    return lambda rig, driver: rig.signal(unit, number)


def _timed(act: Callable[[Driver], object]) -> Callable[[Rig, Driver], int]:
    def timed(rig: Rig, driver: Driver) -> int:
        now_ns = time.monotonic_ns()
        act(driver)
        return now_ns

    return timed


def _stop_sending(driver: Driver) -> None:
    driver.sending = False


def _resume(unit: str) -> Callable[[Rig, Driver], object]:
    return lambda rig, driver: rig.signal(unit, SIGCONT)


def stopped(cause: Cause, rig: Rig) -> Measured:
    """Drive, cause the failure, and measure how soon the motors are off; then check
    that they stay off with the stick held. Raises InvalidMeasurement or CheckFailed."""
    with rig.driver() as driver, rig.scope() as scope:
        _start_driving(driver, scope)
        time.sleep(random.random() * TICK_S)
        waited_s = rig.waited_s()
        at_ns = cause.fail(rig, driver)
        try:
            wait_for(lambda: scope.stands, "the car keeps driving", GONE_S)
        finally:
            number, idle_s = len(scope.samples), waited_s()
            cause.mend(rig, driver)
        if not scope.drove_at(at_ns):
            raise InvalidMeasurement("the car stopped before the failure")
        time.sleep(STAYS_S)
        if scope.moved_since(number):
            raise CheckFailed("a motor turned again while the stick was still held")
        _check_cause(rig, cause)
        return Measured(scope.stopped_after_s(at_ns), scope.trace(at_ns), idle_s)


def _start_driving(driver: Driver, scope: Scope) -> None:
    """Check that the car drives before the failure: otherwise a stop proves nothing.
    Raises InvalidMeasurement."""
    try:
        driver.ready().drive(1.0, 0.0)
        wait_for(lambda: scope.driving, "the car does not drive")
    except TimeoutError as fault:
        raise InvalidMeasurement(str(fault)) from None


def _check_cause(rig: Rig, cause: Cause) -> None:
    """Check the stop cause that the car reports, once it answers."""
    reported: list[str | None] = []

    def expected() -> bool:
        reported[:] = [stop_cause(rig.port)]
        return reported[0] in cause.causes

    wait_for(lambda: expected() or reported[0] != NO_ANSWER, "no answer", SEAT_S)
    try:
        wait_for(expected, "")
    except TimeoutError:
        causes = " or ".join(map(str, cause.causes))
        message = f"the car reports {reported[0]}, expected {causes}"
        raise (InvalidMeasurement if reported[0] in BUSY else CheckFailed)(message) from None


def _check(name: str, proves: str, limit_s: float, cause: Cause, *needs: str) -> Check:
    return Check(
        name,
        "stops",
        proves,
        Limit(limit_s, "s", SOURCE),
        ("loops", *needs),
        partial(stopped, cause),
    )


SILENT = ("silence",)
CHECKS = (
    _check(
        "stop-finger",
        "Lifting the finger stops the car.",
        0.04,
        Cause(_timed(lambda page: page.drive(0.0, 0.0)), (None,)),
    ),
    _check(
        "stop-silence",
        "A page that sends only pings stops the car.",
        0.30,
        Cause(_timed(_stop_sending), SILENT),
    ),
    _check(
        "stop-wifi-silent",
        "A silent link stops the car.",
        0.30,
        Cause(_timed(Driver.fall_silent), SILENT),
    ),
    _check(
        "stop-link-cut",
        "A closed connection stops the car.",
        0.30,
        Cause(_timed(Driver.cut), SILENT),
    ),
    _check(
        "stop-camera-hangs",
        "A hung camera stops a car that requires a picture.",
        0.30,
        Cause(_signalled("camera", SIGSTOP), ("blind", "silence"), _resume("camera")),
        "processes",
        "camera",
    ),
    _check(
        "stop-camera-killed",
        "A killed camera stops a car that requires a picture.",
        0.30,
        Cause(_signalled("camera", SIGKILL), ("blind", "silence")),
        "processes",
        "camera",
    ),
    _check(
        "stop-run-killed",
        "Killing `run` stops the car.",
        0.05,
        Cause(_signalled("run", SIGKILL), ("handover",)),
        "processes",
    ),
    _check(
        "stop-run-hangs",
        "A hung `run` stops the car.",
        0.15,
        Cause(_signalled("run", SIGSTOP), ("wheels_stopped", "silence"), _resume("run")),
        "processes",
    ),
    _check(
        "stop-wheels-killed",
        "Killing `wheels` stops the car, by the dead man's switch.",
        0.30,
        Cause(_signalled("wheels", SIGKILL), ("wheels_lost",)),
        "processes",
    ),
    _check(
        "stop-wheels-hang",
        "A hung `wheels` stops the car, by the dead man's switch.",
        0.30,
        Cause(_signalled("wheels", SIGSTOP), ("wheels_lost", "wheels_stopped"), _resume("wheels")),
        "processes",
    ),
    _check(
        "stop-pigpiod-killed",
        "Killing pigpiod stops the car.",
        0.50,
        Cause(_signalled("pigpiod", SIGKILL), ("pins", "wheels_stopped")),
        "processes",
        "pin daemon",
    ),
    _check(
        "stop-pigpiod-hangs",
        "A hung pigpiod stops the car.",
        0.50,
        Cause(_signalled("pigpiod", SIGSTOP), ("pins", "wheels_lost", "wheels_stopped")),
        "processes",
        "pin daemon",
    ),
)
