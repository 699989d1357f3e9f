"""Runs in the VM: pins and edges over a real gpiochip, the kernel's gpio-sim.

    LinuxPins -> ioctl -> gpiolib -> gpio-sim <- sysfs: the level, and the pull outside

Limits: a Pi's own chip and its kernel's parameter (a folder stands in) are not tested. Nor is true
time: the VM's processor is emulated, and the delay of an edge does not carry over to a Pi.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fpvcar.config import profiles
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.linux import gpiochip
from fpvcar.devices.linux.gpio import LinuxBoard, LinuxEdges, LinuxPins, suits
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.devices.pins import Edge, PinsFault
from tests.vm_sensors import inside_wheels, tell
from tests.vm_sensors.gpio_sim import (
    FORWARD,
    LABEL,
    LEFT,
    LINES,
    MOTORS,
    PROFILE,
    REVERSE,
    Outside,
    kernel_says,
    plug,
)

SOON_S = 60.0


@contextmanager
def pins(consumer: str = "a test") -> Iterator[LinuxPins]:
    with closing(LinuxPins(consumer)) as made:
        yield made


def refusal(act: Callable[[], object]) -> str:
    try:
        act()
    except PinsFault as fault:
        return str(fault)
    raise AssertionError("not refused")


def gathered(edges: LinuxEdges, count: int) -> list[Edge]:
    """Return the next `count` edges."""
    got: list[Edge] = []
    end_s = time.monotonic() + SOON_S
    while len(got) < count:
        assert time.monotonic() < end_s, f"deaf: {got}"
        got += edges.read(0.1)
    return got


def found(outside: Outside) -> None:
    """The chip is found by its label, independent of its number, and suits a machine with it."""
    with closing(gpiochip.find()) as chip:
        assert (chip.label, chip.lines) == (LABEL, LINES)
    assert suits(daemons=()) and not suits(daemons=("/bin/sh",))


def levels(outside: Outside) -> None:
    """Outputs are set alone and together, and are all released at the end."""
    with pins() as made:
        made.claim((FORWARD, REVERSE))
        assert not outside.driven()
        made.write_together((FORWARD, REVERSE), 1)
        assert outside.level(FORWARD) and outside.level(REVERSE)
        made.write(FORWARD, 0)
        made.write(5, 1)
        assert not outside.level(FORWARD) and outside.level(REVERSE)
        assert outside.level(5)
        made.trigger(5, 10)
        assert not outside.level(5)
        made.check()
    assert not outside.level(REVERSE) and not outside.level(5)


def duty(outside: Outside) -> None:
    """Two pins at once have each their own duty cycle, and a stop acts at once."""
    with pins() as made:
        made.set_frequency(FORWARD, 10)
        made.set_frequency(LEFT, 10)
        for forward, left in ((0.25, 0.7), (0.6, 0.1)):
            made.pwm(FORWARD, forward)
            made.pwm(LEFT, left)
            for gpio, wanted in ((FORWARD, forward), (LEFT, left)):
                end_s = time.monotonic() + SOON_S
                while abs((share := outside.mean(gpio, 2.0)) - wanted) >= 0.2:
                    assert time.monotonic() < end_s, (gpio, wanted, share)
        made.write(FORWARD, 0)
        assert not any(outside.level(FORWARD) for _ in range(200))
        made.pwm(LEFT, 1.0)
        assert all(outside.level(LEFT) for _ in range(200))


def servo(outside: Outside) -> None:
    """Short pulses repeat. An emulated processor cannot show their length: its delay exceeds
    their 1.5 ms."""
    with pins() as made:
        made.servo(FORWARD, 1500.0)
        end_s = time.monotonic() + SOON_S
        while not 0.01 < (share := outside.mean(FORWARD, 3.0)) < 0.7:
            assert time.monotonic() < end_s, share


def edges(outside: Outside) -> None:
    """Edges from two pins come with the kernel's time and in its order; levels follow."""
    with pins() as made:
        made.input_pull_down(7)
        made.input_pull_up(8, 0)
        with closing(made.edges((7, 8))) as heard:
            assert (heard.level(7), heard.level(8)) == (0, 1), "pulls"
            before_us = time.monotonic_ns() // 1000
            outside.pull(7, 1)
            outside.pull(8, 0)
            # For each pin a kernel thread reads the level, once it is scheduled.
            seen = gathered(heard, 2)
            outside.pull(7, 0)
            seen += gathered(heard, 1)
            got = sorted(
                ((one.tick_us - before_us) % (1 << 32), one.gpio, one.level) for one in seen
            )
            assert [one[1:] for one in got] == [(7, 1), (8, 0), (7, 0)], got
            assert 0 <= got[0][0] < 5e6, got
            assert (heard.level(7), heard.level(8)) == (0, 0)
            assert heard.read(0.0) == []


def steady(outside: Outside) -> None:
    """A level shorter than the debounce time is no push."""
    with pins() as made:
        made.input_pull_up(8, 200_000)
        with closing(made.edges((8,))) as heard:
            for _ in range(10):  # this processor may be away for longer than a push
                begin_s = time.monotonic()
                outside.pull(8, 0)
                outside.pull(8, 1)
                if time.monotonic() - begin_s < 0.2:
                    assert heard.read(0.6) == []
                    break
                while heard.read(0.6):
                    pass
            else:
                raise AssertionError("no push was short enough to be none")
            outside.pull(8, 0)
            assert [(one.gpio, one.level) for one in gathered(heard, 1)] == [(8, 0)]


@patch.object(hcsr04, "TURN_S", 5.0)  # the trigger's thread starts late on a busy host
def echo(outside: Outside) -> None:
    """The echo of an HC-SR04: how long it was high by the kernel's clock.

    On a busy host the kernel stamps some edges late, so only one measurement need be right.
    """
    played: list[float] = []

    def play() -> None:
        begin_s = time.monotonic()
        outside.pull(7, 1)
        time.sleep(0.005)
        outside.pull(7, 0)
        played.append(time.monotonic() - begin_s)

    with pins() as made:
        made.input_pull_down(7)
        made.write(8, 0)
        with closing(made.edges((7,))) as heard:

            class Player:
                def trigger(self, gpio: int, length_us: int, after_s: float) -> None:
                    made.trigger(gpio, length_us, after_s)
                    threading.Thread(target=play).start()

            player: Any = Player()
            end_s, width_s = time.monotonic() + SOON_S, 0.0
            while not (played and 0.005 <= width_s < played[-1] + 0.005):
                assert time.monotonic() < end_s, (width_s, played)
                sensor = hcsr04.HcSr04(player, heard, 8, 7, NoiseFilter(0.2, 0.2), time.monotonic)
                sample = sensor.measure()
                width_s = 2.0 * (sample.range_m or 0.0) / hcsr04.sound_m_per_s(20.0)
                time.sleep(0.1)  # the player ends


def busy(outside: Outside) -> None:
    """A pin in use is refused with its owner and the next step; no other pin is taken."""
    with pins("the neighbour") as one, pins() as other:
        one.write(REVERSE, 1)
        words = refusal(lambda: other.claim((FORWARD, REVERSE)))
        assert f"GPIO {REVERSE} is taken by 'the neighbour': end" in words, words
        assert outside.level(REVERSE) and not outside.level(FORWARD)
        other.claim((FORWARD,))
        one.input_pull_down(7)
        other.input_pull_down(7)
        with closing(one.edges((7,))):
            assert "'the neighbour'" in refusal(lambda: other.edges((7,)))


def beyond(outside: Outside) -> None:
    """A pin that the board lacks is refused."""
    with pins() as made:
        words = refusal(lambda: made.write(LINES, 1))
        assert f"has 0 to {LINES - 1}; is this profile for another board?" in words


def nobody(outside: Outside) -> None:
    """A user outside the group gpio gets that advice."""
    os.seteuid(65534)
    try:
        words = refusal(gpiochip.find)
    finally:
        os.seteuid(0)
    assert "usermod -aG gpio" in words, words


def loose(outside: Outside) -> None:
    """A kernel that leaves a motor on, or hides the setting, is refused; no pin is taken."""
    profile = Path("/run/toad.toml")
    profile.write_text(PROFILE)
    lock = profile.with_name("guardian.lock")
    for word, says in (("Y", "would run on"), ("", "may run on")):
        with kernel_says(word):
            words = refusal(lambda: LinuxBoard(profiles.load(profile), lock))
            assert says in words and "dtparam=strict_gpiod" in words, words
            with pins() as made:
                made.claim(MOTORS)  # the pins are free
            unsafe = profiles.load(profile, ["pins.unsafe = true"])
            board = LinuxBoard(unsafe, lock)
            board.close()


OWN: dict[str, Callable[[Outside], None]] = {
    check.__name__: check
    for check in (found, levels, duty, servo, edges, steady, echo, busy, beyond, nobody, loose)
}


def main() -> int:
    """Run checks and print each name with "ok" or its trace. The arguments are the number of
    runs of each, and their names."""
    outside, checks = plug(), OWN | inside_wheels.CHECKS
    runs, *names = sys.argv[1:]

    def often(check: Callable[[Outside], None]) -> None:
        for _ in range(int(runs)):
            check(outside)

    tell({name: partial(often, checks[name]) for name in names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
