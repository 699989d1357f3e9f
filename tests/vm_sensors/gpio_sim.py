"""In the VM: the kernel's gpio-sim, labelled as a Pi's chip, and the outer side of its pins.

A released line behaves as with dtparam=strict_gpiod: the pull decides. Run as a program, this makes
the VM a Pi 5 with that setting, until the VM is switched off.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fpvcar.devices.linux import strict

CONFIG = Path("/sys/kernel/config/gpio-sim")
LABEL, LINES = "pinctrl-bcm2835", 54
MOTORS = FORWARD, REVERSE, LEFT, RIGHT = 17, 27, 24, 23
LOOK = """
import os, sys, time
file, end_s, looks, high = os.open(sys.argv[1], os.O_RDONLY), None, 0, 0
while end_s is None or time.monotonic() < end_s:
    end_s = end_s or time.monotonic() + float(sys.argv[2])
    looks += 1
    high += os.pread(file, 1, 0) == b"1"
print(high / looks)
"""
PROFILE = f"""
[car]
name = "Toad"
[pins]
backend = "linux"
[motors.drive]
forward = {FORWARD}
reverse = {REVERSE}
winding_ohm = 5
[motors.steer]
forward = {LEFT}
reverse = {RIGHT}
winding_ohm = 5
"""


class Outside:
    """The other end of the pins."""

    def __init__(self) -> None:
        device = (CONFIG / "pi/dev_name").read_text().strip()
        chip = (CONFIG / "pi/bank0/chip_name").read_text().strip()
        self._home = Path("/sys/devices/platform") / device / chip

    def place(self, gpio: int) -> Path:
        """Return the file in which the kernel shows the level of a pin."""
        return self._home / f"sim_gpio{gpio}/value"

    def level(self, gpio: int) -> int:
        """Return the level of a pin."""
        return int(self.place(gpio).read_text())

    def pull(self, gpio: int, level: int) -> None:
        """Drive an input to a level."""
        word = "pull-up" if level else "pull-down"
        (self._home / f"sim_gpio{gpio}/pull").write_text(word)

    def mean(self, gpio: int, for_s: float) -> float:
        """Return the share of the time for which a pin is high.

        Another process measures it: a thread of this process would delay the thread that makes the
        pulses.
        """
        done = subprocess.run(
            [sys.executable, "-c", LOOK, self.place(gpio), str(for_s)],
            check=True,
            capture_output=True,
            text=True,
        )
        return float(done.stdout)

    def driven(self) -> bool:
        """Return whether a motor turns, or may in the next moment."""
        return any(self.level(gpio) for gpio in MOTORS)


def plug(own: str = LABEL) -> Outside:
    """Make a Pi's chip, and beside it another chip that is not a Pi's, unless they exist."""
    for name, label in (("other", "fpga"), ("pi", own)):
        bank = CONFIG / name / "bank0"
        if bank.exists():
            continue
        bank.mkdir(parents=True)
        (bank / "num_lines").write_text(str(LINES))
        (bank / "label").write_text(label)
        (CONFIG / name / "live").write_text("1")
    return Outside()


def say(word: str, label: str = LABEL) -> None:
    """Mount a /sys/module as on a Pi, its parameter with this value; "" leaves the parameter
    out."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/module"], check=True)
    path = Path("/") / strict.PARAMETER.format(strict.MODULES[label])
    path.parent.mkdir(parents=True)
    if word:
        path.write_text(f"{word}\n")


@contextmanager
def kernel_says(word: str) -> Iterator[None]:
    """Do the same as say() for the time of the block."""
    say(word)
    try:
        yield
    finally:
        subprocess.run(["umount", "/sys/module"], check=True)


if __name__ == "__main__":
    plug("pinctrl-rp1")
    say("N", "pinctrl-rp1")
