"""Servos of a profile that do not steer: what is refused, and the pulses."""

from typing import Any

import pytest

from fpvcar.config import ConfigError, profiles
from fpvcar.config.base import HEADER_GPIO

DRIVE = {"forward": 17, "reverse": 27}
STEER = {"forward": 24, "reverse": 23}
HAT = {"drive": {"driver": "motor-hat", "port": 1}, "steer": {"driver": "motor-hat", "port": 2}}
PAN = {"signal": 12}


def parse(servos: dict[str, Any], **more: Any) -> Any:
    motors = more.pop("motors", {"drive": DRIVE, "steer": STEER})
    return profiles.parse({"car": {"name": "T"}, "motors": motors, "servos": servos, **more})


@pytest.mark.parametrize(
    ("servos", "more", "refusal"),
    [
        ({"pan": {}}, {}, r"servos.pan: expected signal \(a GPIO\) or channel"),
        ({"pan": {"signal": 12, "channel": 0}}, {}, "servos.pan: expected signal"),
        ({"pan": {"signal": 17}}, {}, "GPIO 17 is already used by"),
        ({"pan": {"signal": HEADER_GPIO + 1}}, {}, "BCM number"),
        ({"pan": PAN | {"least_deg": 60}}, {}, "least_deg = 60: expected below most_deg = 60"),
        ({"pan": PAN | {"rest_deg": 61}}, {}, "rest_deg = 61: expected -60 to 60"),
        ({"pan": PAN | {"most_deg": 101}}, {}, "its pulse is 2510 us; expected 500 to 2500"),
        ({"pan": PAN | {"sped_deg_s": 9}}, {}, "did you mean servos.pan.speed_deg_s"),
        ({"a b": PAN}, {}, "servos.a b: expected a name"),
        ({f"s{n}": {"channel": n} for n in range(7)}, {}, "7 defined; expected 6 at most"),
        ({"a": {"channel": 3}, "b": {"channel": 3}}, {}, "b.channel = 3: already used by servos.a"),
        ({"pan": {"channel": 8}}, {"motors": HAT}, "channel = 8: already used by motors.drive"),
        ({"pan": {"channel": 0}}, {"pca9685": {"pwm_hz": 1000}}, "pwm_hz = 1000: expected 40"),
        ({"pan": {"channel": 0}}, {"pca9685": {"oe": 4}}, "oe = 4: it stops motors"),
        ({"pan": {"channel": 0}}, {"lights": {"head": [3]}}, r"SCL of I2C bus 1"),
        (
            {"pan": {"signal": 12}, "tilt": {"signal": 18}},
            {"pins": {"backend": "linux", "pwm": [12, 18]}},
            "12, 18 share a channel",
        ),
    ],
)
def test_unfit_servo_is_refused(servos: dict[str, Any], more: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ConfigError, match=refusal):
        parse(servos, **more)


def test_pulses_follow_the_angle_and_invert() -> None:
    profile = parse({"pan": PAN, "tilt": {"channel": 0, "invert": True, "centre_us": 1400}})
    pan, tilt = profile.servos["pan"], profile.servos["tilt"]
    assert [pan.pulse_us(deg) for deg in (-60, 0, 60)] == [900, 1500, 2100]
    assert tilt.pulse_us(10) == 1300 and tilt.deg(1300) == 10
    assert profile.hat_hz() == 50


def test_stop_leaves_the_kernels_pwm_of_servos() -> None:
    pins = {"backend": "linux", "pwm": [12, 13]}
    profile = parse({"pan": PAN, "tilt": {"signal": 13}}, pins=pins)
    assert profile.stop_pwm() == () and 12 not in profile.stop_pins()
    assert profile.stop_chips() == ()
