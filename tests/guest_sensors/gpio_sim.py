"""In the guest: the kernel's gpio-sim, labelled as a Pi's chip, and what is outside.

It lets go of a line as dtparam=strict_gpiod does: the pull decides. As a program it
makes the guest a Pi 5 with that line, until it is switched off.
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
[motors.steer]
forward = {LEFT}
reverse = {RIGHT}
"""


class Outside:
    """The other end of the pins."""

    def __init__(self) -> None:
        device = (CONFIG / "pi/dev_name").read_text().strip()
        chip = (CONFIG / "pi/bank0/chip_name").read_text().strip()
        self._home = Path("/sys/devices/platform") / device / chip

    def place(self, gpio: int) -> Path:
        """Where the kernel says what a pin does."""
        return self._home / f"sim_gpio{gpio}/value"

    def level(self, gpio: int) -> int:
        """What a pin does."""
        return int(self.place(gpio).read_text())

    def pull(self, gpio: int, level: int) -> None:
        """Drives an input."""
        word = "pull-up" if level else "pull-down"
        (self._home / f"sim_gpio{gpio}/pull").write_text(word)

    def mean(self, gpio: int, for_s: float) -> float:
        """Share of the time for which a pin is high, by the eyes of another process:
        a thread of this one would hold up the one that makes the pulses."""
        done = subprocess.run(
            [sys.executable, "-c", LOOK, self.place(gpio), str(for_s)],
            check=True,
            capture_output=True,
            text=True,
        )
        return float(done.stdout)

    def driven(self) -> bool:
        """A motor turns, or may in the next moment."""
        return any(self.level(gpio) for gpio in MOTORS)


def plug(own: str = LABEL) -> Outside:
    """A Pi's chip, and beside it another one that is not."""
    for name, label in (("other", "fpga"), ("pi", own)):
        bank = CONFIG / name / "bank0"
        bank.mkdir(parents=True)
        (bank / "num_lines").write_text(str(LINES))
        (bank / "label").write_text(label)
        (CONFIG / name / "live").write_text("1")
    return Outside()


def say(word: str, label: str = LABEL) -> None:
    """/sys/module is as on a Pi, its parameter with this value; "": there is none."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/module"], check=True)
    path = Path("/") / strict.PARAMETER.format(strict.MODULES[label])
    path.parent.mkdir(parents=True)
    if word:
        path.write_text(f"{word}\n")


@contextmanager
def kernel_says(word: str) -> Iterator[None]:
    """The same for a while."""
    say(word)
    try:
        yield
    finally:
        subprocess.run(["umount", "/sys/module"], check=True)


if __name__ == "__main__":
    plug("pinctrl-rp1")
    say("N", "pinctrl-rp1")
