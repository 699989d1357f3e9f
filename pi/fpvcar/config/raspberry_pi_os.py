"""Files and units of a car on Raspberry Pi OS.

Paths are relative to a root, so that setup and doctor can work on another card.
"""

PROFILE = "etc/fpvcar/car.toml"
CONFIG_TXT = ("boot/firmware/config.txt", "boot/config.txt")
"""Candidates, newest first; images before Bookworm have the second one."""
MODEL = "proc/device-tree/model"
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
PIN_DAEMON = "pigpiod.service"
HATS = (0x60, 0x6F)
"""Addresses of a PCA9685 on motor HATs: Adafruit's, its clones'."""
METERS = (0x40, 0x41, 0x44, 0x45)
"""Addresses of an INA219, by its two jumpers."""
