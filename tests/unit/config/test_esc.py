"""Profiles of a car with an ESC: one that could not be stopped is refused, with the next step."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from fpvcar.config import ConfigError, HatEsc, profiles
from fpvcar.config.checks import warnings
from fpvcar.drive import mixing
from fpvcar.runtime import paths

GPIO, HAT = paths.HARDWARE / "rc-esc.toml", paths.HARDWARE / "rc-esc-hat.toml"
ON_PIGPIO = ('pins.backend = "pigpio"', "pins.pwm = []")


def test_stops_of_both_cars_name_the_neutral_pulse() -> None:
    gpio, hat = profiles.load(GPIO), profiles.load(HAT, ["motors.drive.neutral_us = 1512"])
    assert gpio.stop_pwm() == ((18, "auto", 1500), (13, "auto", 0)) and gpio.stop_pins() == ()
    assert hat.stop_chips() == ((1, 0x40, 0, 1512),) and hat.stop_pins() == (4,)
    assert hat.hat_hz() == 50 and isinstance(hat.motors.esc, HatEsc)
    assert profiles.load(paths.HARDWARE / "bench.toml").motors.esc is None


@pytest.mark.parametrize(
    ("path", "lines", "words"),
    [
        (GPIO, ON_PIGPIO, 'esc_loss_s = 3: pigpiod that hangs can send no neutral'),
        (GPIO, ('pins.backend = "auto"', "pins.pwm = []"), 'expected "linux" and pins.pwm = [18]'),
        (GPIO, ("pins.pwm = [13]",), "signal = 18: expected pins.pwm = [18]"),
        (GPIO, ("motors.drive.signal = 17", "pins.pwm = [17, 13]"), "one of 12 and 18"),
        (GPIO, ("motors.drive.signal = 4",), "motors.drive.signal = 4: expected `int` >= 9"),
        (GPIO, ("motors.drive.forward_us = 1600",), "forward_us = 1600, reverse_us = 1000"),
        (GPIO, ("motors.drive.reverse_us = 1900",), "one at least 200 below neutral_us = 1500"),
        (GPIO, ("motors.drive.forward_us = 2100",), "forward_us = 2100: expected `float` <= 2000"),
        (GPIO, ("motors.drive.arm_s = 0.5",), "arm_s = 0.5: expected `float` >= 1"),
        (HAT, ("pca9685.oe = 4", "motors.steer.channel = 0"), "channel = 0: already used"),
        (HAT, ("pca9685.pwm_hz = 333",), "expected 40 to 60 for the servo or ESC"),
    ],
)  # fmt: off
def test_refusal_names_key_value_and_next_step(
    path: Path, lines: Sequence[str], words: str
) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.load(path, lines)
    assert words in str(fault.value)


def test_esc_that_steers_is_refused() -> None:
    steer = ["motors.steer = {}", 'motors.steer.driver = "esc"', "motors.steer.signal = 13"]
    with pytest.raises(ConfigError, match="motors.steer: an ESC can only drive"):
        profiles.load(GPIO, steer)


def test_pca9685_without_oe_needs_to_be_accepted() -> None:
    lines = [line for line in HAT.read_text().splitlines(True) if not line.startswith("oe =")]
    raw = "".join(lines)
    with pytest.raises(ConfigError, match=r"pca9685.oe is missing.*motors.drive.unguarded = true"):
        profiles.parse(tomllib.loads(raw))
    accepted = profiles.parse(
        tomllib.loads(raw.replace("channel = 0\n", "channel = 0\nunguarded = true\n"))
    )
    assert any("without OE nothing stops the car" in line for line in warnings(accepted))


def test_pigpio_is_accepted_with_an_esc_that_stops_soon() -> None:
    profile = profiles.load(GPIO, [*ON_PIGPIO, "motors.drive.esc_loss_s = 0.3"])
    assert profile.stop_pins() == (18, 13) and warnings(profile) == []


def test_throttle_is_limited_while_the_esc_may_run_on() -> None:
    slow = profiles.load(GPIO, ["motors.drive.limit = 0.8"])
    soon = profiles.load(GPIO, ["motors.drive.limit = 0.8", "motors.drive.esc_loss_s = 0.2"])
    assert [mixing.top_duty(car.motors.pair[0], 7.4) for car in (slow, soon)] == [0.3, 0.8]
    assert mixing.duty(-0.5, soon.motors.pair[0], 7.4) == pytest.approx(-0.4)
    assert any("esc_loss_s = 3" in line for line in warnings(slow))
