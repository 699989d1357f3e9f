"""Facts about a car, input of the checks. Values only.

A fact that could not be collected is an `Unasked` with the reason.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from fpvcar.config import Profile
from fpvcar.devices.computer import ComputerReadings
from fpvcar.devices.sensor_modes import ModeReport
from fpvcar.doctor.report import Answer, Broken, Unasked, Works


class Unit(Struct, frozen=True):
    """State of a systemd unit, in systemd's terms."""

    name: str
    load: str
    active: str
    restarts: int = 0
    watchdog: bool = True


class Running(Struct, frozen=True):
    """State reported by `fpvcar run`; `faults` as /healthz lists them.

    `lowered_rate`: reason for a lower frame rate than the set one, or "".
    """

    version: str
    camera: str
    faults: tuple[str, ...] = ()
    mode: ModeReport | None = None
    """Mode of the camera's sensor."""
    lowered_rate: str = ""


class Pin(Struct, frozen=True):
    """Configuration of a pin: `function` is "ip" for an input, `pull` "pu" or "pd"."""

    function: str
    pull: str


class DeadManTest(Struct, frozen=True):
    """Result of the dead man's self-test, which feeds it and then stops. `after_s`: time until
    it released the motors; None: it failed to. `whole`: tested with the car's own pins, not
    beside a running car."""

    after_s: float | None
    whole: bool
    fault: str = ""


class MotorTest(Struct, frozen=True):
    """Result of turning a motor."""

    motor: str
    result: Works | Broken


class CardSpeed(Struct, frozen=True):
    """Result of writing a few MB: the mean rate, and the longest write until it was on the card."""

    mb_per_s: float
    longest_s: float


class Air(Struct, frozen=True):
    """Channel of the Wi-Fi, and the number of other strong networks on it."""

    channel: int
    rivals: int


class Os(Struct, frozen=True):
    """Fields of /etc/os-release, and the kernel's release."""

    name: str
    codename: str
    kernel: str


class Facts(Struct, frozen=True, kw_only=True):
    """Facts about one car at one moment. `profile`: the profile, or the reason of its refusal."""

    version: str
    model: str | None
    os: Os
    profile: Profile | str
    profile_path: str
    packages: Mapping[str, str] | Unasked
    """Version of each installed package."""
    local_libcamera: str
    """Path of a libcamera below /usr/local, which programs find before the packages'; or ""."""
    modules_missing: tuple[str, ...]
    config_lines: frozenset[str] | Unasked
    """Lines of config.txt, and words of cmdline.txt."""

    backend: Literal["pigpio", "linux"]
    pins: Answer
    """Whether the pin back end answers."""
    release: Answer
    """Whether the kernel releases a pin whose owner dies."""
    pwm: Answer
    """Whether the kernel has a PWM for each pin that needs one."""
    holders: Mapping[int, str] | Unasked
    """Owner of each GPIO, by the kernel's name for it."""
    levels: Mapping[int, Pin] | Unasked
    trip: DeadManTest | Unasked
    turned: tuple[MotorTest, ...] | Unasked

    buses: Mapping[int, Works | Broken]
    """Whether each bus exists."""
    answering: frozenset[tuple[int, int]] | Unasked
    """Each (bus, address) that answers."""
    camera: Answer
    mode: ModeReport | None
    """Mode of the camera's sensor; None if the camera reports no sensor."""
    encoder: str
    """Last line of the kernel about a hung H.264 encoder since the boot, or ""."""

    computer: ComputerReadings
    state: str
    recordings: str
    writable: Answer
    """Whether the car may write its codes."""
    speed: CardSpeed | Unasked
    old_recordings: int | Unasked
    """Number of recordings dated before the first car."""
    certificate_days: float | Unasked
    """Remaining validity of the certificate in days."""

    wifi: str | None
    """Interface name of the Wi-Fi adapter, e.g. wlan0."""
    power_save: bool | Unasked
    air: Air | Unasked
    name: str | Unasked
    """Host name of the car in the network."""
    least_timeout_us: int | None
    """Shortest retransmission time-out of TCP, as set in the kernel; None: not configurable."""

    units: tuple[Unit, ...] | Unasked
    watchdog: bool | Unasked
    """Whether systemd feeds the SoC's watchdog."""
    running: Running | Unasked
