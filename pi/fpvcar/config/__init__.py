"""Profile of a car: its schema, its checks and its loader."""

# ruff: noqa: I001  # one block per module; `as` marks the names as public

from fpvcar.config.base import (
    BENCH_PINS as BENCH_PINS,
    bench_module as bench_module,
    ConfigError as ConfigError,
    Gpio as Gpio,
    PLAIN as PLAIN,
    Port as Port,
    PersonName as PersonName,
    Positive as Positive,
    Section as Section,
    Share as Share,
)
from fpvcar.config.motors import (
    AnyMotor as AnyMotor,
    DcMotor as DcMotor,
    Esc as Esc,
    EscMotor as EscMotor,
    HAT_CHANNELS as HAT_CHANNELS,
    HatEsc as HatEsc,
    HatServo as HatServo,
    L298n as L298n,
    Motor as Motor,
    MotorHat as MotorHat,
    Motors as Motors,
    Mx1508 as Mx1508,
    Pca9685 as Pca9685,
    Servo as Servo,
    ServoMotor as ServoMotor,
)
from fpvcar.config.network import Mqtt as Mqtt, Network as Network
from fpvcar.config.schema import (
    Battery as Battery,
    Button as Button,
    Camera as Camera,
    Car as Car,
    Colour as Colour,
    Exposure as Exposure,
    Flip as Flip,
    Gate as Gate,
    Guard as Guard,
    GuardMode as GuardMode,
    I2c as I2c,
    Intercom as Intercom,
    Lights as Lights,
    NIGHT_S as NIGHT_S,
    Picture as Picture,
    Pins as Pins,
    Profile as Profile,
    Recording as Recording,
    Shape as Shape,
    Speeds as Speeds,
    View as View,
)
from fpvcar.config.server import Server as Server
from fpvcar.config.servos import AimServo as AimServo
from fpvcar.config.sensors import (
    Depth as Depth,
    Sensors as Sensors,
    Tof as Tof,
    Tfmini as Tfmini,
    Ultrasound as Ultrasound,
)
