"""The loop around the wheels: it waits when nothing is due."""

import signal
import time
from pathlib import Path

from fpvcar import paths, profiles
from fpvcar.devices.pins import MotorBoard, PinsFault
from fpvcar.wheels import Wheels
from fpvcar.wheels_socket import Service


def nobody() -> MotorBoard:
    raise PinsFault("no pins here")


def test_a_signal_that_ends_nothing_leaves_no_busy_loop(tmp_path: Path) -> None:
    """Its byte is taken from the pipe, or poll would return at once for good."""
    wheels = Wheels(
        profiles.load(paths.HARDWARE / "bench.toml"), connect=nobody, alarm=lambda: None
    )
    # A clock that stands still: the next try for the pins never comes due.
    with Service(wheels, tmp_path, lambda: 0) as service:
        wheels.tick(0)
        before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
        try:
            signal.raise_signal(signal.SIGUSR1)
            service._round()  # wakes up for it
            began_s = time.monotonic()
            service._round()
            assert time.monotonic() - began_s > 0.02, "it did not wait"
        finally:
            signal.signal(signal.SIGUSR1, before)
