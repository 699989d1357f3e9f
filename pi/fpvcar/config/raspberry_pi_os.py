"""What a car needs of Raspberry Pi OS: where its files are, and its units.

Paths are below a root, so that setup can write to, and doctor look at, another card.
"""

PROFILE = "etc/fpvcar/car.toml"
CONFIG_TXT = ("boot/firmware/config.txt", "boot/config.txt")
"""Newest first; the other one is where images before Bookworm have it."""
MODEL = "proc/device-tree/model"
STATE = "var/lib/fpvcar"
RUNTIME = "run/fpvcar"
SERVICES = ("fpvcar.service", "fpvcar-wheels.service")
"""Those that a watchdog looks after."""
UNITS = (
    "fpvcar-pins-off.socket",
    "fpvcar-wheels.service",
    "fpvcar.service",
    "fpvcar-network.socket",
    "fpvcar-network.service",
)
PIN_DAEMON = "pigpiod.service"
HATS = (0x60, 0x6F)
"""Where a PCA9685 is on motor HATs: Adafruit's, its clones'."""
METERS = (0x40, 0x41, 0x44, 0x45)
"""Where an INA219 is, by its two jumpers."""
