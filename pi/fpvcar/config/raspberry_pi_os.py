"""Files and units of a car on Raspberry Pi OS.

Paths are relative to a root, so that setup and doctor can work on another card.
"""

import re
from collections.abc import Sequence

PROFILE = "etc/fpvcar/car.toml"
CONFIG_TXT = ("boot/firmware/config.txt", "boot/config.txt")
"""Candidates, newest first; images before Bookworm have the second one."""
MODEL = "proc/device-tree/model"
RP1_BOARD = re.compile(r"Raspberry Pi (Compute Module )?5")
"""Models (5, 500, Compute Module 5) whose pins are on an RP1, which pigpiod does not support."""
STATE = "var/lib/fpvcar"
RUNTIME = "run/fpvcar"
SERVICES = ("fpvcar.service", "fpvcar-wheels.service")
"""Services that have a systemd watchdog."""
UNITS = (
    "fpvcar-pins-off.socket",
    "fpvcar-wheels.service",
    "fpvcar.service",
    "fpvcar-network.socket",
    "fpvcar-network.service",
)
PORTAL = "fpvcar-portal.socket"
"""Unit that a car can do without: another program may have port 80."""
SMART_HOME = "fpvcar-mqtt.service"
"""Unit that the owner of a car without a station enables."""
PIN_DAEMON = "pigpiod.service"
HATS = (0x60, 0x6F)
"""Addresses of a PCA9685 on motor HATs: Adafruit's, its clones'."""
METERS = (0x40, 0x41, 0x44, 0x45)
"""Addresses of an INA219, by its two jumpers."""
PWM_FUNCTIONS = {12: 4, 18: 2, 13: 4, 19: 2}
"""GPIO with a PWM in hardware -> its function for dtoverlay=pwm, of channel 0 and then 1."""


def pwm_lines(gpios: Sequence[int]) -> list[str]:
    """Return the lines of config.txt for the kernel's PWM of these pins (README of Raspberry Pi's
    overlays). Analogue audio is off: on a Pi Zero to 4 it uses the same hardware."""
    pairs = [(gpio, func) for gpio, func in PWM_FUNCTIONS.items() if gpio in gpios]
    lines = [f"dtoverlay=pwm-gpio,gpio={gpio}" for gpio in gpios if gpio not in PWM_FUNCTIONS]
    if pairs:
        words = ["pwm-2chan" if len(pairs) > 1 else "pwm"]
        for number, (gpio, func) in zip(("", "2"), pairs, strict=False):
            words += [f"pin{number}={gpio}", f"func{number}={func}"]
        lines += [f"dtoverlay={','.join(words)}", "dtparam=audio=off"]
    return lines
