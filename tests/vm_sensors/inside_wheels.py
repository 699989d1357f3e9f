"""Runs in the VM: the real `wheels`, driven, with gpio-sim; each fault stops the car.

driver (as `run`) -> wheels and guardian, real processes -> gpiolib -> gpio-sim
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from testkit.pins.wheels import Client, until

from fpvcar.config import profiles
from fpvcar.wheels.__main__ import main
from fpvcar.wire.wheels import Status
from tests.vm_sensors.gpio_sim import PROFILE, Outside, kernel_says

SOON_S, ZEROS = 60.0, 5
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
POLL_S = 0.002
"""Pause between two readings of the pins: the VM's two processors are for the car."""
OFF_S, STANDS_S = 10.0, 1.0
"""Limit of a stop, and the time without a pulse that shows one. The limit only ends the wait: the
VM's clock runs on while a busy host runs others."""


def forked(act: Callable[[], object]) -> int:
    """Run a function in a process of its own that has no program to load first."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def drive(runtime: Path) -> None:
    """Drive as `run` does for a driver who never stops: zeros first, then none. Ends when a busy
    machine has made a setpoint too late."""
    client, zeros = Client(runtime), ZEROS
    while True:
        answer = client.send(0.0 if zeros else 0.3)
        if answer is not None and answer.status == Status.APPLIED:
            zeros = max(0, zeros - 1)
        elif not zeros:
            return
        time.sleep(0.02)


class Car:
    """The real `wheels`, and a driver."""

    def __init__(self, toml: str, driven: Callable[[], bool]) -> None:
        """Start both processes and wait until the car drives. `driven()` returns whether a motor
        turns, or may in the next moment."""
        self._toml, self._driven, self._runtime = toml, driven, Path("/run/car")
        self._runtime.mkdir(exist_ok=True)
        end_s = time.monotonic() + SOON_S
        self._begin()
        while not driven():
            assert time.monotonic() < end_s, "it does not drive"
            if os.waitid(os.P_PID, self.driver, ENDED) is not None:
                self.end()
                self._begin()
            time.sleep(POLL_S)

    def _begin(self) -> None:
        profile, place = self._runtime / "toad.toml", self._runtime / "wheels.sock"
        profile.write_text(self._toml)
        place.unlink(missing_ok=True)
        self.wheels = forked(lambda: main(profiles.load(profile), self._runtime))
        until(place.exists, SOON_S, "no wheels")
        self.driver = forked(lambda: drive(self._runtime))

    @property
    def guardian(self) -> int:
        """The only child process of `wheels`."""
        pid = self.wheels
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0])

    def watch(self, driven: Callable[[], bool]) -> None:
        """Use another check for "driven" from now on."""
        self._driven = driven

    def stands(self) -> None:
        """Assert that the car stops, and stays stopped for longer than any pulse."""
        begin_s = last_s = now_s = time.monotonic()
        while now_s < last_s + STANDS_S:
            assert now_s < begin_s + OFF_S, "it drives on"
            time.sleep(POLL_S)
            now_s = time.monotonic()
            if self._driven():
                last_s = now_s

    def end(self) -> None:
        """End both processes, in any state."""
        for one in (self.driver, self.wheels):
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)
        until(lambda: not self._driven(), SOON_S, "pins are held")


def pull(car: Car, part: str, number: signal.Signals) -> None:
    """Send a signal to a part of a driving car; assert that it stops, then end it."""
    try:
        os.kill(getattr(car, part), number)
        car.stands()
    finally:
        car.end()


def _check(part: str, number: signal.Signals) -> Callable[[Outside], None]:
    def check(outside: Outside) -> None:
        with kernel_says("N"):
            pull(Car(PROFILE, outside.driven), part, number)

    return check


CHECKS: dict[str, Callable[[Outside], None]] = {
    "driver_killed": _check("driver", signal.SIGKILL),
    "driver_hangs": _check("driver", signal.SIGSTOP),
    "wheels_killed": _check("wheels", signal.SIGKILL),
    "wheels_hang": _check("wheels", signal.SIGSTOP),
    "guardian_killed": _check("guardian", signal.SIGKILL),
    "guardian_hangs": _check("guardian", signal.SIGSTOP),
}
LONG = {"driver_killed", "driver_hangs", "guardian_killed", "guardian_hangs"}
"""Checks of the long form only."""
