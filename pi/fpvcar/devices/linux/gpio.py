"""Pins, edges and motors over the kernel's gpiochip, without a daemon.

Not lgpio: its thread ends a pulse train when it likes, after our own write has set the
pin; it cannot switch two lines at once; its module leaves a pipe in the folder where it
is imported. Not libgpiod: it has no pulses, and these calls are few.
"""

import os
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fpvcar.config import Profile
from fpvcar.devices.guardian import Guardian
from fpvcar.devices.linux import gpiochip, strict
from fpvcar.devices.linux.pulses import MOST_HZ, Pulses
from fpvcar.devices.pins import Edge, MotorDriver, Pins, PinsFault, PinsLost

SERVO_S = 0.02
DRIVEN = gpiochip.OUTPUT | gpiochip.PULL_DOWN
"""An output; an input that is pulled down, from when its owner is gone."""
TICK_MASK = (1 << 32) - 1
DAEMONS = tuple(f"/usr/{place}/pigpiod" for place in ("bin", "sbin", "local/bin"))
ROOT = Path("/")
MODEL = ROOT / "proc/device-tree/model"


def suits(daemons: Sequence[str] = DAEMONS, model: Path = MODEL) -> bool:
    """Is this the back end for this machine? A Pi without pigpiod, or a Pi 5, which it
    does not know."""
    installed = any(map(os.path.exists, daemons))
    try:
        chip = gpiochip.find()
    except PinsLost:  # not allowed, say: whoever opens it is told so
        return not installed and model.exists()
    chip.close()
    return chip.label == "pinctrl-rp1" or not installed


def daemon_below(root: Path) -> bool:
    """Is pigpiod installed on a card, whose board may not even be known?"""
    return any((root / one.lstrip("/")).exists() for one in DAEMONS)


class LinuxEdges:
    """Changes of some inputs, with the kernel's time stamps."""

    def __init__(self, lines: Sequence[gpiochip.Lines]) -> None:
        self._lines = tuple(lines)
        self._poll = select.epoll()
        for one in self._lines:
            self._poll.register(one.fileno(), select.EPOLLIN)
        self._levels: dict[int, int] = {}
        for one in self._lines:
            self._levels |= one.get()

    def read(self, timeout_s: float, changes: int = 1) -> list[Edge]:
        """What has changed; waits so long for the first change, and [] is nothing."""
        ready = {fd for fd, _ in self._poll.poll(max(0.0, timeout_s))}
        found = []
        try:
            for one in self._lines:
                if one.fileno() in ready:
                    found += one.edges()
        except OSError as fault:
            raise PinsLost(f"edges: {fault.strerror}") from None
        found.sort()
        self._levels |= {gpio: level for _, gpio, level in found}
        return [Edge(ns // 1000 & TICK_MASK, gpio, level) for ns, gpio, level in found]

    def fileno(self) -> int:
        """For select: readable where `read` has something."""
        return self._poll.fileno()

    def level(self, gpio: int) -> int:
        """The pin's level after the last edge."""
        return self._levels[gpio]

    def close(self) -> None:
        """Releases the lines."""
        self._poll.close()
        for one in self._lines:
            one.close()


class LinuxPins:
    """Pins of a Pi's header; each is taken when it is first used."""

    def __init__(self, consumer: str) -> None:
        """`consumer`: what the kernel tells others who has a pin. Raises PinsLost."""
        self._consumer, self._chip = consumer, gpiochip.find()
        self.label = self._chip.label
        self._outputs: dict[int, gpiochip.Lines] = {}
        self._inputs: dict[int, tuple[int, int]] = {}
        """Flags and debouncing time of pins that are to be heard."""
        self._hz: dict[int, int] = {}
        self._pulses = Pulses(self._put)

    def claim(self, gpios: Sequence[int]) -> None:
        """Takes pins that are to be switched together; they are low now."""
        lines = self._chip.request(gpios, DRIVEN, self._consumer)
        self._outputs |= dict.fromkeys(gpios, lines)

    def write(self, gpio: int, level: int) -> None:
        """Makes the pin a steady output; stops its PWM."""
        self.write_together((gpio,), level)

    def write_together(self, gpios: Sequence[int], level: int) -> None:
        """Switches outputs that were claimed together by one call."""
        for gpio in gpios:
            if gpio not in self._outputs:
                self.claim((gpio,))
            self._pulses.stop(gpio)
        try:
            self._put(dict.fromkeys(gpios, level))
        except OSError as fault:
            names = ", ".join(map(str, gpios))
            raise PinsLost(f"write GPIO {names}: {fault.strerror}") from None

    def _put(self, levels: dict[int, int]) -> None:
        left = dict(levels)
        while left:
            lines = self._outputs[next(iter(left))]
            lines.set({gpio: left.pop(gpio) for gpio in lines.gpios if gpio in left})

    def set_frequency(self, gpio: int, hz: int) -> None:
        """MOST_HZ at most: a thread makes the pulses."""
        self._hz[gpio] = min(hz, MOST_HZ)

    def pwm(self, gpio: int, duty: float) -> None:
        """Makes the pin high for `duty` of the time."""
        if duty in (0.0, 1.0):
            self.write(gpio, int(duty))
        else:
            period_s = 1.0 / self._hz.get(gpio, MOST_HZ)
            self._pulse(gpio, period_s, duty * period_s)

    def servo(self, gpio: int, pulse_us: float) -> None:
        """Sends pulses, 50 a second, as long as the thread's edges are late."""
        self._pulse(gpio, SERVO_S, pulse_us / 1e6)

    def _pulse(self, gpio: int, period_s: float, on_s: float) -> None:
        if gpio not in self._outputs:
            self.claim((gpio,))
        self._pulses.run(gpio, period_s, on_s)

    def listen(self, gpio: int, steady_us: int) -> None:
        """An input with pull-up; the kernel waits until it is steady."""
        self._inputs[gpio] = gpiochip.PULL_UP, steady_us

    def hear(self, gpio: int) -> None:
        """An input with pull-down: unplugged it is low."""
        self._inputs[gpio] = gpiochip.PULL_DOWN, 0

    def edges(self, gpios: Sequence[int]) -> LinuxEdges:
        """Takes inputs, as `listen` and `hear` have said, and hears them."""
        lines: list[gpiochip.Lines] = []
        try:
            for gpio in gpios:
                pull, steady_us = self._inputs[gpio]
                flags = gpiochip.INPUT | gpiochip.BOTH_EDGES | pull
                lines.append(
                    self._chip.request((gpio,), flags, self._consumer, steady_us)
                )
            return LinuxEdges(lines)
        except PinsFault:
            for one in lines:
                one.close()
            raise

    def trigger(self, gpio: int, length_us: int, after_s: float = 0.0) -> None:
        """Waits, then pulls the pin high for so long, or for a little longer."""
        time.sleep(after_s)
        self.write(gpio, 1)
        end_s = time.perf_counter() + length_us / 1e6
        while time.perf_counter() < end_s:
            pass
        self.write(gpio, 0)

    def check(self) -> None:
        """Asks the chip for its name."""
        self._chip.check()

    def close(self) -> None:
        """Releases the pins."""
        self._pulses.close()
        for lines in set(self._outputs.values()):
            lines.close()
        self._outputs.clear()
        self._chip.close()


class Holding:
    """Holds the motor pins low, once whoever has them is dead. Raises PinsFault."""

    def __init__(self, gpios: Sequence[int]) -> None:
        self._gpios, self._chip = tuple(gpios), gpiochip.find()
        self._lines: gpiochip.Lines | None = None

    def __call__(self) -> None:
        """Takes them, which makes them low."""
        if self._lines is None:
            try:
                self._lines = self._chip.request(self._gpios, DRIVEN, "fpvcar guardian")
            except PinsFault:
                self._chip.close()
                raise


class LinuxBoard:
    """The motors of one car on the kernel's pins, and their guardian."""

    def __init__(
        self, profile: Profile, drivers: Callable[[Pins], Sequence[MotorDriver]]
    ) -> None:
        """Takes the pins, low, and arms the guardian. Raises PinsFault."""
        gpios = profile.motor_pins()
        self._pins, self._gpios = LinuxPins("fpvcar wheels"), gpios
        try:
            if not profile.pins.unsafe:
                strict.refuse_loose(self._pins.label, ROOT)
            self._pins.claim(gpios)
            self.drivers = drivers(self._pins)
            self.dead_man = Guardian(lambda: Holding(gpios))
        except PinsFault:
            self._pins.close()
            raise

    def close(self) -> None:
        """Switches all off and lets go; if it cannot, the guardian does."""
        try:
            self._pins.write_together(self._gpios, 0)
        except PinsFault:
            self.dead_man.leave()
        else:
            self.dead_man.kill()
        self._pins.close()
