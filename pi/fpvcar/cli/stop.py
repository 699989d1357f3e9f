"""Verb `fpvcar stop`: switches the motors off, even if other processes hang.

    wheels.sock of each run-time directory --> SIGKILL to the `wheels` behind it
    pins of the profile and of motor-pins  --> inputs with pull-down; a PCA9685, PWM off
    pins-off.sock --> the root helper: the same, and it ends the pin daemon, too

If the registers of the pins are unknown (Pi 5), the kernel makes them inputs when `wheels` has
ended.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fpvcar.config import ConfigError, profiles, raspberry_pi_os
from fpvcar.config.motors import ChipStop, PwmStop
from fpvcar.devices import backends
from fpvcar.runtime import paths
from fpvcar.wheels import pins_off_client, service

SwitchOff = Callable[[Sequence[int], Sequence[ChipStop], Sequence[PwmStop]], int]
NEXT_STEP = (
    "the motors could not be switched off: sudo fpvcar stop; sudo systemctl stop fpvcar-wheels; "
    "else cut the power"
)


def run(
    profile: Path,
    overrides: Sequence[str],
    runtimes: Sequence[Path],
    switch_off: SwitchOff = backends.switch_off,
) -> int:
    """Stop the motors; the exit status is 1 if all methods failed.

    Raises ConfigError if the profile is refused and no `wheels` has published its pins.
    """
    ended = [end_wheels(runtime) for runtime in runtimes]  # first: it would drive again
    failed = switch_off(*pins_of(profile, overrides, runtimes))
    helped = [
        pins_off_client.ask_helper(runtime / pins_off_client.SOCKET, pid)
        for runtime, pid in zip(runtimes, ended, strict=True)
        if (runtime / pins_off_client.SOCKET).exists()
    ]
    if failed and not any((*ended, *helped)):
        _report(NEXT_STEP)
        return 1
    return 0


def runtimes() -> list[Path]:
    """Return the run-time directories where `wheels` may run: the car's, and this user's."""
    directories = [Path("/") / raspberry_pi_os.RUNTIME]
    try:
        directories.append(paths.runtime_directory())
    except OSError as fault:  # owned by another user: no reason not to stop the car
        _report(str(fault))
    return list(dict.fromkeys(directories))


def pins_of(
    profile: Path, overrides: Sequence[str], runtimes: Sequence[Path]
) -> tuple[list[int], list[ChipStop], list[PwmStop]]:
    """Return motor pins, PCA9685 and PWM: the profile's, and those that each `wheels` has
    published. Raises ConfigError if both sources are empty."""
    gpios: set[int] = set()
    chips: set[ChipStop] = set()
    pwm: set[PwmStop] = set()
    for runtime in runtimes:
        try:
            text = (runtime / pins_off_client.MOTOR_PINS).read_text()
            pins, boards, channels = backends.published_pins(text)
        except FileNotFoundError:
            continue
        except OSError as fault:
            _report(f"{runtime / pins_off_client.MOTOR_PINS}: {fault.strerror or fault}")
            continue
        gpios.update(pins)
        chips.update(boards)
        pwm.update(channels)
    try:
        loaded = profiles.load(profile, overrides)
    except ConfigError as fault:
        if not gpios and not chips and not pwm:
            raise
        _report(f"{fault}; stopping only the pins that `wheels` uses")
    else:
        stops = backends.stops(loaded)
        gpios.update(stops[0])
        chips.update(stops[1])
        pwm.update(stops[2])
    return sorted(gpios), sorted(chips), sorted(pwm)


def end_wheels(runtime: Path) -> int:
    """Kill the process that listens at RUNTIME/wheels.sock; return its id, 0 without one."""
    path = runtime / service.SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.setblocking(False)  # a `wheels` that hangs accepts no connection
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return 0
        except OSError as fault:
            _report(f"{path}: {fault.strerror}; sudo fpvcar stop")
            return 0
        pid = pins_off_client.peer_pid(connection)
        if pid <= 0:  # in another PID namespace
            _report(f"{path}: its process is in another PID namespace")
            return 0
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as fault:
            _report(f"wheels, process {pid}: {fault.strerror}; sudo fpvcar stop")
            return 0
    _report(f"ended wheels, process {pid}")
    return pid


def _report(message: str) -> None:
    print(f"fpvcar stop: {message}", file=sys.stderr)
