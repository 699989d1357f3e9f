"""A car's profile: TOML -> frozen structs. Bounds are declared; strangers refused.

Units are in the names. Pin numbers are BCM and stand in hardware/*.toml only.
"""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct

Gpio = Annotated[int, Meta(ge=0, le=27)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0)]


class ConfigError(ValueError):
    """A profile that is refused; the text says where, what, and what would do."""


class _Section(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Pins(_Section, frozen=True):
    """Where pigpiod answers."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1024, le=32000)] = 8888


class Motor(_Section, frozen=True):
    """One bridge of an MX1508: two inputs, PWM on one, the other low."""

    forward: Gpio
    reverse: Gpio
    pwm_hz: Annotated[int, Meta(ge=50, le=8000)] = 800
    invert: bool = False
    dead_band: Share = 0.0
    """Duty below which the motor does not turn; the smallest one that is used."""
    max_volts: Annotated[float, Meta(gt=0, le=24)] = 3.0
    """Mean voltage that the motor bears; duty is limited to max_volts / battery."""
    slew_per_s: Annotated[float, Meta(gt=0, le=1000)] = 1000.0
    """How fast throttle may rise (1 = from stand to full in a second)."""
    trim: Annotated[float, Meta(ge=-0.5, le=0.5)] = 0.0
    brake_s: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """How long a stop brakes before it lets go; 0 only lets go."""
    rest_s: Annotated[float, Meta(ge=0, le=0.2)] = 0.03
    """How long a change of direction rests with both inputs low."""


class Motors(_Section, frozen=True):
    """The car has a drive motor and a steering motor (forward = left)."""

    drive: Motor
    steer: Motor


class Battery(_Section, frozen=True):
    """Pack voltages; INA219 on the I2C bus where `address` is given."""

    full_v: Positive = 8.4
    nominal_v: Positive = 7.5
    empty_v: Positive = 6.2
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    address: Annotated[int, Meta(ge=0x40, le=0x4F)] | None = None
    shunt_ohm: Positive = 0.1


class Lights(_Section, frozen=True):
    """LEDs; each list may be empty."""

    head: tuple[Gpio, ...] = ()
    rear: tuple[Gpio, ...] = ()


class Ultrasound(_Section, frozen=True):
    """One HC-SR04: where it looks (0 is ahead, + is left)."""

    trigger: Gpio
    echo: Gpio
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0


class Tof(_Section, frozen=True):
    """One VL53L0X: where it looks (0 is ahead, + is left) and where it is found.

    `power` is the GPIO of its XSHUT. All start at 0x29: with more than one each needs a
    `power` of its own, and gets its `address` while the others are held down.
    """

    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    address: Annotated[int, Meta(ge=0x08, le=0x77)] = 0x29
    power: Gpio | None = None
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0


class Sensors(_Section, frozen=True):
    """Range sensors, by name."""

    tof: dict[str, Tof] = {}
    ultrasound: dict[str, Ultrasound] = {}
    celsius: Annotated[float, Meta(ge=-40, le=60)] = 20.0
    """Of the air: sound is 2 % faster when it is 12 degrees warmer."""


class Camera(_Section, frozen=True):
    """`command` runs any program that writes Annex B; else `source` is built in.

    "bench" shows the emulated world; for `make bench`, "strip" shows a clock and
    "stamped" the world with that clock above it.
    """

    source: str = "bench"
    command: tuple[str, ...] = ()
    width: Annotated[int, Meta(ge=64, le=1920)] = 640
    height: Annotated[int, Meta(ge=64, le=1080)] = 480
    fps: Annotated[float, Meta(ge=1, le=120)] = 30.0
    bitrate: Annotated[int, Meta(ge=100_000, le=25_000_000)] = 2_000_000
    gop_s: Annotated[float, Meta(gt=0, le=1)] = 1.0


class Gate(_Section, frozen=True):
    """When the car stops by itself. The upper bounds are the design's promises."""

    silence_s: Annotated[float, Meta(ge=0.1, le=0.25)] = 0.25
    stale_s: Annotated[float, Meta(ge=0.02, le=0.15)] = 0.15
    blind: str = "stop"
    """Without a picture: "stop", "limit" (to blind_limit) or "ignore"."""
    blind_s: Annotated[float, Meta(ge=0.05, le=0.3)] = 0.25
    blind_limit: Share = 0.3
    limit: Share = 1.0
    """Speed limit at start, as a share of full throttle."""


class Guard(_Section, frozen=True):
    """The collision guard; nothing is guarded where no range sensor looks."""

    mode: str = "off"
    """"off", "warn" (the page shows it) or "limit"."""
    stop_m: Annotated[float, Meta(ge=0.02, le=2)] = 0.15
    """Where the car is to stand, before what the sensor sees."""
    top_mps: Annotated[float, Meta(gt=0, le=10)] = 1.4
    """At full throttle."""
    brake_mps2: Annotated[float, Meta(gt=0, le=20)] = 0.9
    """Of a stop from there, on the mean: v^2 / 2 / way."""
    reaction_s: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """From a range to the motors, besides the range's own age."""
    stale_s: Annotated[float, Meta(gt=0, le=1)] = 0.2
    unseen_limit: Share = 0.3
    """Towards where a sensor looks and says nothing."""


class Server(_Section, frozen=True):
    """Who may ask. The IP literals, localhost and `car.name` are always allowed."""

    allowed_hosts: tuple[str, ...] = ()
    max_viewers: Annotated[int, Meta(ge=1, le=1000)] = 50
    """Of each kind of socket; whoever may drive has places of its own beside them."""
    max_connections: Annotated[int, Meta(ge=16, le=4096)] = 256
    """TCP, whatever becomes of it; some 30 kB each, more with https."""
    max_per_address: Annotated[int, Meta(ge=4, le=4096)] = 128
    """Of them from one IPv4 address or one IPv6 /64."""
    first_takes_wheel: bool = False
    """Whoever comes first and may drive has the wheel without asking."""


class Car(_Section, frozen=True):
    """What the car is called, on the page and by mDNS (NAME.local)."""

    name: Annotated[str, Meta(min_length=1, max_length=24, pattern="^[A-Za-z0-9-]+$")]


class Profile(_Section, frozen=True):
    """One car."""

    car: Car
    motors: Motors
    pins: Pins = Pins()
    battery: Battery = Battery()
    lights: Lights = Lights()
    sensors: Sensors = Sensors()
    camera: Camera = Camera()
    gate: Gate = Gate()
    guard: Guard = Guard()
    server: Server = Server()

    def motor_pins(self) -> tuple[int, ...]:
        """Every pin that can move the car; drive first."""
        drive, steer = self.motors.drive, self.motors.steer
        return (drive.forward, drive.reverse, steer.forward, steer.reverse)


CHOICES = {
    ("camera", "source"): ("bench", "stamped", "strip", "none"),
    ("gate", "blind"): ("stop", "limit", "ignore"),
    ("guard", "mode"): ("off", "warn", "limit"),
}


def load(path: Path, overrides: Sequence[str] = ()) -> Profile:
    """Reads a profile. Raises ConfigError, which names the file and what is wrong.

    Each override is a line of TOML with a dotted key: 'pins.port = 8889'. An empty
    table takes all away that is in it: 'sensors.tof = {}'.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        for line in overrides:
            _merge(raw, tomllib.loads(line))
    except OSError as fault:
        raise ConfigError(f"{path}: {fault.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: not TOML: {fault}") from None
    try:
        return parse(raw)
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None


def _merge(base: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and value and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def parse(raw: dict[str, Any]) -> Profile:
    """A profile from decoded TOML. Raises ConfigError."""
    for stranger in _strangers(raw, Profile, ""):
        raise ConfigError(stranger)
    try:
        profile = msgspec.convert(raw, Profile)
    except msgspec.ValidationError as fault:
        raise ConfigError(str(fault)) from None
    for (section, key), known in CHOICES.items():
        value = getattr(getattr(profile, section), key)
        if value not in known:
            wanted = ", ".join(known)
            raise ConfigError(f'{section}.{key} = "{value}": expected one of {wanted}')
    _refuse_shared_pins(profile)
    _refuse_shared_addresses(profile.sensors.tof)
    if not profile.battery.empty_v < profile.battery.full_v:
        low, high = profile.battery.empty_v, profile.battery.full_v
        raise ConfigError(f"battery.empty_v = {low}: expected below full_v = {high}")
    return profile


def _strangers(raw: dict[str, Any], kind: type, where: str) -> Iterator[str]:
    known = get_type_hints(kind)
    for key, value in raw.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            hint = (
                f"did you mean {where}{near[0]}?"
                if near
                else f"known here: {', '.join(sorted(known))}"
            )
            yield f"unknown key {where}{key}; {hint}"
        elif isinstance(value, dict):
            inner = known[key]
            if isinstance(inner, type) and issubclass(inner, _Section):
                yield from _strangers(value, inner, f"{where}{key}.")
            elif get_args(inner):  # dict[str, Section]
                for name, entry in value.items():
                    if isinstance(entry, dict):
                        section = get_args(inner)[1]
                        yield from _strangers(entry, section, f"{where}{key}.{name}.")


def _used_pins(value: Any, where: str) -> Iterator[tuple[int, str]]:
    if isinstance(value, Struct):
        hints = get_type_hints(type(value), include_extras=True)
        for key, hint in hints.items():
            inner = getattr(value, key)
            place = f"{where}.{key}" if where else key
            if hint is Gpio:
                yield inner, place
            elif hint == Gpio | None and inner is not None:
                yield inner, place
            elif hint == tuple[Gpio, ...]:
                for gpio in inner:
                    yield gpio, place
            else:
                yield from _used_pins(inner, place)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _used_pins(inner, f"{where}.{key}")


def _refuse_shared_pins(profile: Profile) -> None:
    seen: dict[int, str] = {}
    for gpio, place in _used_pins(profile, ""):
        if gpio in seen:
            raise ConfigError(
                f"{place} = {gpio}: GPIO {gpio} is already used by {seen[gpio]}"
            )
        seen[gpio] = place


def _refuse_shared_addresses(tofs: dict[str, Tof]) -> None:
    """Sensors of one bus must be told apart, and need XSHUT to be told anything."""
    seen: dict[tuple[int, int], str] = {}
    for name, tof in tofs.items():
        place, where = f"sensors.tof.{name}", (tof.bus, tof.address)
        if where in seen:
            raise ConfigError(
                f"{place}.address = {tof.address:#x}: already that of {seen[where]}"
            )
        seen[where] = place
        together = sum(other.bus == tof.bus for other in tofs.values())
        if together > 1 and tof.power is None:
            raise ConfigError(
                f"{place} has no power: with {together} VL53L0X on bus {tof.bus} "
                f"expected the GPIO of its XSHUT"
            )
