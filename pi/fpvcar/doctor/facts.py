"""What doctor knows of a car before it judges. Values only.

Where nobody could look there is an `Unasked` with the reason.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from fpvcar.config import Profile
from fpvcar.devices.computer import Found
from fpvcar.doctor.report import Unasked


class Unit(Struct, frozen=True):
    """One unit of systemd's, in its words."""

    name: str
    load: str
    active: str
    restarts: int = 0
    watchdog: bool = True


class Running(Struct, frozen=True):
    """What `fpvcar run` says of itself; `faults` as /healthz lists them."""

    version: str
    camera: str
    faults: tuple[str, ...] = ()


class Pin(Struct, frozen=True):
    """How the chip has a pin: `function` is "ip" for an input, `pull` "pu" or "pd"."""

    function: str
    pull: str


class Trip(Struct, frozen=True):
    """The dead man was fed, and then not. `after_s`: when it let go of the motors;
    None: it did not. `whole`: with the car's own pins, not beside a running car."""

    after_s: float | None
    whole: bool
    words: str = ""


class Turned(Struct, frozen=True):
    """A motor was told to turn; "" or why it could not."""

    motor: str
    words: str = ""


class CardSpeed(Struct, frozen=True):
    """What a few MB took: the mean, and the longest write until it was on the card."""

    mb_per_s: float
    longest_s: float


class Air(Struct, frozen=True):
    """The Wi-Fi's channel, and how many others are heard well on it."""

    channel: int
    rivals: int


class Os(Struct, frozen=True):
    """Of /etc/os-release, and the kernel's release."""

    name: str
    codename: str
    kernel: str


class Facts(Struct, frozen=True, kw_only=True):
    """One car at one moment. `profile`: as it is, or why it was refused."""

    version: str
    model: str | None
    os: Os
    profile: Profile | str
    profile_path: str
    packages: frozenset[str] | Unasked
    modules_missing: tuple[str, ...]
    config_lines: frozenset[str] | Unasked
    """Of config.txt, and the words of cmdline.txt."""

    backend: Literal["pigpio", "linux"]
    pins: str | Unasked
    """"" where whoever drives the pins answers."""
    loose: str | Unasked
    """"" where the kernel lets go of a pin whose owner dies."""
    holders: Mapping[int, str] | Unasked
    """Who has a GPIO, as the kernel names it."""
    levels: Mapping[int, Pin] | Unasked
    trip: Trip | Unasked
    turned: tuple[Turned, ...] | Unasked

    buses: Mapping[int, str]
    """"" where there is such a bus; else why not."""
    answering: frozenset[tuple[int, int]] | Unasked
    """(bus, address) at which something answers."""
    camera: str | Unasked
    """"ok", or what is wrong."""

    computer: Found
    state: str
    writable: str | Unasked
    """"" where the car may write its codes."""
    speed: CardSpeed | Unasked
    old_recordings: int | Unasked
    """How many are dated before there was a car."""
    certificate_days: float | Unasked
    """How long it is good from now on."""

    wifi: str | None
    """The Wi-Fi's interface."""
    power_save: bool | Unasked
    air: Air | Unasked
    name: str | Unasked
    """As the network knows the car."""
    least_timeout_us: int | None
    """TCP's, as the kernel is set; None: it cannot be set."""

    units: tuple[Unit, ...] | Unasked
    watchdog: bool | Unasked
    """The SoC's is fed by systemd."""
    running: Running | Unasked
