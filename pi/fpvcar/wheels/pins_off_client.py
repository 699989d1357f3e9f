"""Client of the root helper that releases the motor pins for `wheels` and `run`.

A connection to its socket is the request; it carries the process id of the `wheels` that is mute.
systemd (on the bench, its stand-in) starts a helper per connection, so that a hanging helper blocks
no other. The helper turns the motor pins to inputs with pull-down and has the pin daemon and
`wheels` restarted, unless a newer `wheels` has the kernel's pins by then. `wheels` writes the list
of pins before it takes them; devices/linux/pins_off.py reads it.
"""

import contextlib
import logging
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from fpvcar.config import Profile
from fpvcar.config.motors import ChipStop, PwmStop
from fpvcar.devices import backends
from fpvcar.devices.motors.bridge import MotorBoard
from fpvcar.runtime import files

SOCKET, MOTOR_PINS = "pins-off.sock", "motor-pins"
log = logging.getLogger("fpvcar.wheels")


def peer_pid(connection: socket.socket) -> int:
    """Return the process that listens at the other end; 0 in another PID namespace."""
    option = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("iII", option)[0])


def ask_helper(path: Path, pid: int = 0) -> bool:
    """Call a helper without waiting, then log the call. Returns False without a helper.

    `pid`: process of the `wheels` that is mute, or 0 if the pins must be released in any case.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as helper:
        helper.setblocking(False)
        try:
            helper.connect(str(path))
        except OSError as fault:
            log.error("no helper at %s: %s", path, fault.strerror or fault)
            return False
        if pid:
            with contextlib.suppress(OSError):
                helper.send(b"%d" % pid)
        log.error("asked the helper to release the motor pins")
        return True


def write_pins(
    runtime: Path, gpios: Sequence[int], chips: Sequence[ChipStop] = (), pwm: Sequence[PwmStop] = ()
) -> None:
    """Write the list of pins for the helper to release, and of PCA9685 chips and the kernel's PWM
    to switch off. Raises OSError."""
    path = runtime / MOTOR_PINS
    files.write_whole(path, [f"{' '.join(words_of(gpios, chips, pwm))}\n".encode()])
    path.chmod(0o640)  # the helper runs in this group


def words_of(
    gpios: Sequence[int], chips: Sequence[ChipStop] = (), pwm: Sequence[PwmStop] = ()
) -> list[str]:
    """Return the words of the list, in the form that pins_off.parse reads."""
    named = [
        ":".join((f"i2c-{bus}", f"{address:#x}", *map(str, esc))) for bus, address, *esc in chips
    ]
    named += [":".join((f"pwm-{gpio}", device, *map(str, esc))) for gpio, device, *esc in pwm]
    return [*map(str, gpios), *named]


class MotorAccess:
    """Ways of `wheels` to its motors: the board, and past a daemon that hangs. None waits for
    long."""

    def __init__(self, profile: Profile, runtime: Path, own_pins: bool = False) -> None:
        """Create the access. State files live in `runtime`. `own_pins`: the daemon drives this
        computer's pins, not the bench's."""
        self._profile, self._runtime = profile, runtime
        self._release = backends.pin_release(profile) if own_pins else None

    def connect(self) -> MotorBoard:
        """Open the board. Raises PinsFault."""
        return backends.open_motors(self._profile, self._runtime)

    def release_pins(self) -> str:
        """Turn the motor pins to inputs without the daemon; return an error text or ""."""
        return self._release() if self._release else ""

    def call_helper(self) -> None:
        """Call the root helper, which does the same and restarts the daemon."""
        ask_helper(self._runtime / SOCKET, os.getpid())
