"""What a car's profile may say, and how one is read."""

# ruff: noqa: I001  # one block; `as` says that the names are meant for others

from fpvcar.config.schema import (
    Battery as Battery,
    Button as Button,
    Camera as Camera,
    Car as Car,
    Colour as Colour,
    ConfigError as ConfigError,
    Depth as Depth,
    Gate as Gate,
    Gpio as Gpio,
    Guard as Guard,
    GuardMode as GuardMode,
    I2c as I2c,
    Lights as Lights,
    Motor as Motor,
    Motors as Motors,
    Pins as Pins,
    Port as Port,
    PersonName as PersonName,
    Positive as Positive,
    Profile as Profile,
    Recording as Recording,
    Section as Section,
    Sensors as Sensors,
    Server as Server,
    Shape as Shape,
    Share as Share,
    Tof as Tof,
    Ultrasound as Ultrasound,
)
