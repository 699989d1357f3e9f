"""python -m fpvcar.wheels: the process that owns the motor pins, run alone."""

import argparse
import logging
import sys
import time
from pathlib import Path

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.config.pwm import slow_pulses
from fpvcar.devices import backends
from fpvcar.runtime import mlock
from fpvcar.wheels.controller import Wheels
from fpvcar.wheels.pins_off_client import MotorAccess, write_pins
from fpvcar.wheels.service import Service
from fpvcar.wheels.servos import ServoThread

log = logging.getLogger("fpvcar.wheels")


def main(profile: config.Profile, runtime: Path, own_pins: bool = False) -> int:
    """Run until SIGTERM or SIGINT. Raises OSError if another process holds the lock.

    `own_pins`: the daemon drives this computer's pins, not the bench's.
    """
    unlocked = mlock.lock()
    if unlocked is not None:
        log.info("memory is not locked: %s", unlocked)
    warn_of_pulses(profile)
    wheels = Wheels(profile, MotorAccess(profile, runtime, own_pins))
    servos = ServoThread(profile) if profile.servos else None
    with Service(wheels, runtime, time.monotonic_ns, servos) as service:
        write_pins(runtime, *backends.stops(profile))
        service.run()
    return 0


def warn_of_pulses(profile: config.Profile) -> None:
    """Log a warning for each PWM that this computer's back end cuts."""
    for warning in slow_pulses(profile, backends.most_hz(backends.pins_backend(profile))):
        log.warning("%s", warning)


def _command_line() -> int:
    parser = argparse.ArgumentParser("python -m fpvcar.wheels", description=main.__doc__)
    parser.add_argument("--profile", type=Path, required=True)
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    try:
        return main(profiles.load(arguments.profile, arguments.overrides), arguments.runtime)
    except (config.ConfigError, OSError) as fault:
        print(f"fpvcar wheels: {fault}", file=sys.stderr)
        return 2 if isinstance(fault, config.ConfigError) else 1


if __name__ == "__main__":
    sys.exit(_command_line())
