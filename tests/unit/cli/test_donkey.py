"""`fpvcar profile from-donkey`: Donkeycar's values become a profile; its file is not executed."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.command import Command

from fpvcar.cli import donkey, profile
from fpvcar.config import ConfigError, Esc, HatEsc, HatServo, Profile, Servo, profiles

TEXTS = {name: path.read_text() for name, path in profile.shipped().items()}


def converted(source: str) -> Profile:
    return profiles.parse(tomllib.loads(donkey.convert(source, TEXTS)[0]))


def pins(**values: Any) -> str:
    return f"PWM_STEERING_THROTTLE = {values!r}\n"


def on_gpio(steering: str, throttle: str) -> str:
    return pins(PWM_STEERING_PIN=steering, PWM_THROTTLE_PIN=throttle)


@pytest.mark.parametrize("train", ["", 'DRIVE_TRAIN_TYPE = "I2C_SERVO"\n'])
def test_defaults_are_those_of_donkeycar(train: str) -> None:
    """Ticks of a 60th of a second: 460 and 290 steer; 500, 370 and 220 drive."""
    car = converted(train)
    drive, steer = car.motors.pair
    assert isinstance(drive, HatEsc) and isinstance(steer, HatServo)
    assert (car.pca9685.bus, car.pca9685.address) == (1, 0x40)
    assert (drive.channel, steer.channel) == (0, 1)
    assert (drive.neutral_us, drive.forward_us, drive.reverse_us) == (1506, 2000, 1000)
    assert steer.pulse_us(1.0) == pytest.approx(1872, abs=1)
    assert steer.pulse_us(-1.0) == pytest.approx(1180, abs=1)
    assert car.camera.source == "picamera2"


def test_channels_address_and_pulses_are_taken() -> None:
    car = converted(
        "import os\nHOME = os.getcwd()\nCAMERA_TYPE = 'WEBCAM'\n"
        + pins(
            PWM_STEERING_PIN="PCA9685.3:41.7",
            PWM_THROTTLE_PIN="PCA9685.3:41.15",
            PWM_THROTTLE_SCALE=1.02,
            STEERING_LEFT_PWM=300,
            STEERING_RIGHT_PWM=440,
            THROTTLE_FORWARD_PWM=300,
            THROTTLE_STOPPED_PWM=360,
            THROTTLE_REVERSE_PWM=420,
        )
    )
    drive, steer = car.motors.pair
    assert isinstance(drive, HatEsc) and isinstance(steer, HatServo)
    assert (car.pca9685.bus, car.pca9685.address) == (3, 0x41)
    assert (drive.channel, steer.channel) == (15, 7)
    assert (drive.neutral_us, drive.forward_us, drive.reverse_us) == (1494, 1245, 1744)
    assert steer.invert and steer.pulse_us(1.0) == pytest.approx(1221, abs=1)
    assert car.camera.source == "v4l2"


def test_pins_of_the_board_become_gpios() -> None:
    car = converted(on_gpio("RPI_GPIO.BOARD.33", "RPI_GPIO.BCM.18"))
    drive, steer = car.motors.pair
    assert isinstance(drive, Esc) and isinstance(steer, Servo)
    assert (drive.signal, steer.signal, car.pins.pwm) == (18, 13, (18, 13))


def test_pigpio_sends_50_hz() -> None:
    source = pins(
        PWM_STEERING_PIN="PIGPIO.BCM.13",
        PWM_THROTTLE_PIN="PIGPIO.BCM.18",
        STEERING_LEFT_PWM=369,
        STEERING_RIGHT_PWM=246,
        THROTTLE_FORWARD_PWM=400,
        THROTTLE_STOPPED_PWM=307,
        THROTTLE_REVERSE_PWM=210,
    )
    drive = converted(source).motors.pair[0]
    assert isinstance(drive, Esc) and drive.neutral_us == 1499


def test_reverse_pulse_that_is_neutral_means_forward_only() -> None:
    drive = converted(pins(THROTTLE_REVERSE_PWM=370)).motors.pair[0]
    assert isinstance(drive, HatEsc) and drive.reverse == "forward-only"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = (", "no Python"),
        ('DRIVE_TRAIN_TYPE = "VESC"', "DRIVE_TRAIN_TYPE = 'VESC': expected PWM_STEERING_THROTTLE"),
        ("PWM_STEERING_THROTTLE = 3", "PWM_STEERING_THROTTLE = 3: expected a dictionary"),
        (pins(PWM_THROTTLE_PIN="MCU.9"), "PWM_THROTTLE_PIN = 'MCU.9': expected such as PCA9685"),
        (on_gpio("PIGPIO.BCM.13", "PIGPIO.BOARD.6"), "pin 6 is no GPIO"),
        (
            on_gpio("PIGPIO.BCM.13", "PIGPIO.BCM.18"),
            "RIGHT_PWM: 1832 us, as PIGPIO sends 50 Hz: ex",
        ),
        (on_gpio("PIGPIO.BCM.13", "PCA9685.1:40.0"), "expected both on one PCA9685, or both on"),
        (on_gpio("RPI_GPIO.BCM.12", "RPI_GPIO.BCM.18"), "pins.pwm: GPIO 12, 18 share a channel"),
        (on_gpio("RPI_GPIO.BCM.12", "RPI_GPIO.BCM.27"), "expected one of 12 and 18"),
        (pins(PWM_THROTTLE_INVERTED=True), "PWM_THROTTLE_INVERTED = True: expected"),
        (pins(THROTTLE_STOPPED_PWM="370"), "THROTTLE_STOPPED_PWM = '370': expected a number"),
        (pins(STEERING_LEFT_PWM=290), "STEERING_RIGHT_PWM: expected two ends"),
        (pins(THROTTLE_FORWARD_PWM=372), "motors.drive.forward_us"),
        ('DRIVE_TRAIN_TYPE = "I2C_SERVO"\nTHROTTLE_CHANNEL = 16', "motors.drive.channel = 16"),
    ],
)
def test_value_that_cannot_be_driven_is_refused(source: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        converted(source)
    assert expected in str(refusal.value)


@given(
    st.text()
    | st.builds(
        "{} = {!r}\n".format,
        st.sampled_from(list(donkey.DEFAULTS)),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_any_text_is_a_profile_or_a_refusal(source: str) -> None:
    for train in ("", 'DRIVE_TRAIN_TYPE = "I2C_SERVO"\n'):
        try:
            converted(train + source)
        except ConfigError as refusal:
            assert str(refusal)


def test_file_is_read_and_not_executed(tmp_path: Path, command: Command) -> None:
    made = tmp_path / "made"
    file = tmp_path / "myconfig.py"
    file.write_text(f"open({str(made)!r}, 'w')\nIMAGE_W = open({str(made)!r}, 'w')\n")
    ended = command("profile", "from-donkey", file)
    assert profiles.parse(tomllib.loads(ended.out)).car.name == "Donkey"
    assert "forward was 2035 us: limited to 2000 us" in ended.err
    assert not made.exists()
    assert "expected one file" in command("profile", "from-donkey", status=2).err
    assert "No such file" in command("profile", "from-donkey", tmp_path / "no.py", status=1).err
