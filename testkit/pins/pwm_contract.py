"""Contract of the kernel's PWM, for the simulated chip and, in a VM, for a real one.

Each check gets a chip on which nothing runs, and leaves it off.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from fpvcar.devices.linux import pins_off
from fpvcar.devices.linux.kernel_pwm import KernelPwm
from fpvcar.devices.pins import PinsLost

LEFT, RIGHT = 12, 13
CLOSE = 0.002
"""Resolution of a PCA9685: 1 of 4096, and rounding."""


class Chip(Protocol):
    """Chip under test: `device` names it; `duty` reads the chip itself, not the driver's file."""

    device: str

    def duty(self, channel: int) -> float:
        """Return the share of the time for which the output is high."""

    def value(self, channel: int, name: str) -> str:
        """Return the content of a file of a channel."""


@contextmanager
def opened(chip: Chip) -> Iterator[KernelPwm]:
    """Open both pins; switch them off in the end, whatever happened."""
    pwm = KernelPwm((LEFT, RIGHT), chip.device)
    try:
        yield pwm
    finally:
        for gpio in (LEFT, RIGHT):
            pins_off.pwm_off(gpio, chip.device)
        pwm.close()


def duties(chip: Chip) -> tuple[float, float]:
    return chip.duty(0), chip.duty(1)


def near(chip: Chip, *expected: float) -> None:
    pairs = list(zip(duties(chip), expected, strict=True))
    assert all(abs(duty - wanted) < CLOSE for duty, wanted in pairs), pairs


def opens_off(chip: Chip) -> None:
    """Both channels are off after opening, and disabled."""
    with opened(chip):
        assert duties(chip) == (0.0, 0.0)
        assert chip.value(0, "enable") == chip.value(1, "enable") == "0"


def keeps_duties_apart(chip: Chip) -> None:
    """Each pin has its own duty, from nothing to always, and back to nothing at once."""
    with opened(chip) as pwm:
        for left, right in ((0.25, 0.0), (0.6, 0.1), (1.0, 0.0), (0.0, 0.5), (0.0, 0.0)):
            pwm.duty(LEFT, left)
            pwm.duty(RIGHT, right)
            near(chip, left, right)


def takes_frequency(chip: Chip) -> None:
    with opened(chip) as pwm:
        for gpio in (LEFT, RIGHT):
            pwm.set_frequency(gpio, 800)
        pwm.duty(LEFT, 0.5)
        near(chip, 0.5, 0.0)
        assert int(chip.value(0, "period")) == 1_250_000


def is_low_while_frequency_rises(chip: Chip) -> None:
    """The kernel refuses a period that is shorter than the duty."""
    with opened(chip) as pwm:
        pwm.set_frequency(LEFT, 50)
        pwm.duty(LEFT, 1.0)
        pwm.set_frequency(LEFT, 800)
        near(chip, 0.0, 0.0)
        pwm.duty(LEFT, 0.5)
        near(chip, 0.5, 0.0)


def outlives_process(chip: Chip) -> None:
    """Nothing stops a channel when its files are closed. The next owner switches it off."""
    with opened(chip) as pwm:
        pwm.duty(LEFT, 0.7)
        pwm.close()
        near(chip, 0.7, 0.0)
        with opened(chip):
            near(chip, 0.0, 0.0)


def helper_switches_off(chip: Chip) -> None:
    """The last resort switches off a channel that another process has open."""
    with opened(chip) as pwm:
        pwm.duty(LEFT, 0.7)
        pwm.duty(RIGHT, 1.0)
        assert pins_off.stop((), (), ((LEFT, chip.device), (RIGHT, chip.device))) == 0
        assert duties(chip) == (0.0, 0.0)
        assert chip.value(0, "enable") == chip.value(1, "enable") == "0"


def drives_again_after_off(chip: Chip) -> None:
    with opened(chip) as pwm:
        pwm.duty(LEFT, 0.4)
        pwm.off()
        near(chip, 0.0, 0.0)
        pwm.duty(LEFT, 0.4)
        near(chip, 0.4, 0.0)


def reports_a_running_channel_that_is_switched_off(chip: Chip) -> None:
    """A motor that was stopped past its owner does not start again by the owner's next write, nor
    does the other input, which would turn a brake into full power."""
    for other, duty in ((LEFT, 0.5), (RIGHT, 1.0)):
        with opened(chip) as pwm:
            pwm.duty(LEFT, 0.4)
            pins_off.pwm_off(LEFT, chip.device)
            try:
                pwm.duty(other, duty)
            except PinsLost as fault:
                assert f"GPIO {LEFT}: another program has switched it off" in str(fault), fault
            else:
                raise AssertionError("not noticed")
            pwm.off()
            near(chip, 0.0, 0.0)


def drives_after_it_was_switched_off_at_rest(chip: Chip) -> None:
    with opened(chip) as pwm:
        pwm.duty(LEFT, 0.4)
        pwm.duty(LEFT, 0.0)
        pins_off.pwm_off(LEFT, chip.device)
        pwm.duty(LEFT, 0.4)
        near(chip, 0.4, 0.0)


def pulses_servo(chip: Chip) -> None:
    with opened(chip) as pwm:
        for pulse_us in (1000.0, 1500.0, 2000.0):
            pwm.servo(RIGHT, pulse_us)
            near(chip, 0.0, pulse_us / 20_000.0)


def refuses_frequency_with_next_step(chip: Chip) -> None:
    """A refused frequency leaves the pin off and the other one running."""
    with opened(chip) as pwm:
        pwm.duty(RIGHT, 0.5)
        try:
            pwm.set_frequency(LEFT, 8000)
        except PinsLost as fault:
            assert f"GPIO {LEFT}" in str(fault) and "choose another pwm_hz" in str(fault), fault
        else:
            raise AssertionError("8000 Hz accepted")
        near(chip, 0.0, 0.5)


def names_devices_if_absent(chip: Chip) -> None:
    try:
        KernelPwm((LEFT,), "absent.pwm")
    except PinsLost as fault:
        assert "absent.pwm" in str(fault) and chip.device in str(fault), fault
        assert "sudo fpvcar setup" in str(fault), fault
    else:
        raise AssertionError("found")


CHECKS: dict[str, Callable[[Chip], None]] = {
    check.__name__: check
    for check in (
        opens_off,
        keeps_duties_apart,
        takes_frequency,
        is_low_while_frequency_rises,
        outlives_process,
        helper_switches_off,
        drives_again_after_off,
        reports_a_running_channel_that_is_switched_off,
        drives_after_it_was_switched_off_at_rest,
        pulses_servo,
        refuses_frequency_with_next_step,
        names_devices_if_absent,
    )
}
