"""A car's profile: frozen structs with their bounds. profiles.py reads its file.

Units are in the names. Pin numbers are BCM and stand in hardware/*.toml only.
"""

from typing import Annotated

from msgspec import Meta, Struct

Gpio = Annotated[int, Meta(ge=0, le=27)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0)]


class ConfigError(ValueError):
    """A profile that is refused; the text says where, what, and what would do."""


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a profile."""


class Pins(Section, frozen=True):
    """Where pigpiod answers."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1024, le=32000)] = 8888


class Motor(Section, frozen=True):
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


class Motors(Section, frozen=True):
    """The car has a drive motor and a steering motor (forward = left)."""

    drive: Motor
    steer: Motor


class Battery(Section, frozen=True):
    """Pack voltages; INA219 on the I2C bus where `address` is given."""

    full_v: Positive = 8.4
    nominal_v: Positive = 7.5
    empty_v: Positive = 6.2
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    address: Annotated[int, Meta(ge=0x40, le=0x4F)] | None = None
    shunt_ohm: Positive = 0.1


class I2c(Section, frozen=True):
    """Who drives the I2C buses: "pigpio" (the daemon) or "linux" (/dev/i2c-N)."""

    backend: str = "pigpio"


class Lights(Section, frozen=True):
    """LEDs; each list may be empty."""

    head: tuple[Gpio, ...] = ()
    rear: tuple[Gpio, ...] = ()
    """They follow reversing."""
    indicator_left: tuple[Gpio, ...] = ()
    indicator_right: tuple[Gpio, ...] = ()
    """They follow the steering, and both blink after a stop."""
    recorder: tuple[Gpio, ...] = ()
    """Lit while it records; blinks while it should and cannot."""


class Button(Section, frozen=True):
    """One of the children's buttons: a contact to ground, and the LED in or beside it.

    Without `button` or `led` it is on the page only. No two have a colour or a shape in
    common: one of them is enough to tell them apart.
    """

    colour: str
    shape: str
    button: Gpio | None = None
    led: Gpio | None = None
    brightness: Share = 1.0
    """Of the LED, when it is lit: the share of the time for which it is on."""


class Ultrasound(Section, frozen=True):
    """One HC-SR04: where it looks (0 is ahead, + is left)."""

    trigger: Gpio
    echo: Gpio
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0


class Tof(Section, frozen=True):
    """One VL53L0X: where it looks (0 is ahead, + is left) and where it is found.

    `power` is the GPIO of its XSHUT. All wake at 0x29: with more than one on a bus each
    needs a `power`, and an `address` of its own that it gets while the others are held
    down.
    """

    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    address: Annotated[int, Meta(ge=0x08, le=0x77)] = 0x29
    power: Gpio | None = None
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0


class Sensors(Section, frozen=True):
    """Range sensors, by name: no two of any kind have the same."""

    tof: dict[str, Tof] = {}
    ultrasound: dict[str, Ultrasound] = {}
    celsius: Annotated[float, Meta(ge=-40, le=60)] = 20.0
    """Of the air: sound is 2 % faster when it is 12 degrees warmer."""


class Depth(Section, frozen=True):
    """A depth camera: "v4l2" is a RealSense D4xx or what else offers Z16, "bench" looks
    into the emulated world. It counts as a range sensor called "depth"."""

    source: str = "none"
    device: str = ""
    """/dev/videoN; empty: the first that offers Z16."""
    width: Annotated[int, Meta(ge=80, le=1280)] = 480
    height: Annotated[int, Meta(ge=45, le=800)] = 270
    fps: Annotated[int, Meta(ge=10, le=90)] = 15
    """Of fewer every other frame would be older than the guard's `stale_s`."""
    wide_deg: Annotated[float, Meta(ge=10, le=150)] = 87.0
    """How wide it sees: a D435; a D415 is 65."""
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0


class Camera(Section, frozen=True):
    """`command` runs any program that writes Annex B; else `source` is built in.

    "bench" shows the emulated world; for `make benchmark`, "strip" shows a clock and
    "stamped" the world with that clock above it.
    """

    source: str = "bench"
    command: tuple[str, ...] = ()
    width: Annotated[int, Meta(ge=64, le=1920)] = 640
    height: Annotated[int, Meta(ge=64, le=1080)] = 480
    fps: Annotated[float, Meta(ge=1, le=120)] = 30.0
    bitrate: Annotated[int, Meta(ge=100_000, le=25_000_000)] = 2_000_000
    gop_s: Annotated[float, Meta(gt=0, le=1)] = 1.0


class Gate(Section, frozen=True):
    """When the car stops by itself. The upper bounds are the design's promises."""

    silence_s: Annotated[float, Meta(ge=0.1, le=0.25)] = 0.25
    stale_s: Annotated[float, Meta(ge=0.02, le=0.15)] = 0.15
    blind: str = "stop"
    """Without a picture: "stop", "limit" (to blind_limit) or "ignore"."""
    blind_s: Annotated[float, Meta(ge=0.05, le=0.3)] = 0.25
    blind_limit: Share = 0.3
    limit: Share = 1.0
    """Speed limit at start, as a share of full throttle."""


class Guard(Section, frozen=True):
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


class Recording(Section, frozen=True):
    """What happens is recorded, a minute a file. See fpvcar.recording."""

    on: bool = True
    """At start; the page switches it."""
    directory: str = ""
    """Where; empty: `recordings` in the state directory."""
    segment_s: Annotated[float, Meta(ge=5, le=600)] = 60.0
    sync_s: Annotated[float, Meta(ge=0.1, le=1)] = 0.8
    """A pulled battery costs this, and what the card needs to write: 1 s together."""
    keep_free_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 500
    """Of the card; the ring makes room, or recording stops."""
    max_mb: Annotated[int, Meta(ge=8, le=10_000_000)] = 8000
    """All recordings together; an hour is about 1000."""
    station: bool = False
    """A base station fetches them: the ring removes only what it has. Without one the
    oldest goes."""
    minute: bool = True
    """While recording is off the last minute is on the card all the same."""


class Server(Section, frozen=True):
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


class Car(Section, frozen=True):
    """What the car is called, on the page and by mDNS (NAME.local)."""

    name: Annotated[str, Meta(min_length=1, max_length=24, pattern="^[A-Za-z0-9-]+$")]


class Profile(Section, frozen=True):
    """One car."""

    car: Car
    motors: Motors
    pins: Pins = Pins()
    battery: Battery = Battery()
    i2c: I2c = I2c()
    lights: Lights = Lights()
    buttons: dict[str, Button] = {}
    """Four to six, in this order on the page; where there are none it shows four."""
    sensors: Sensors = Sensors()
    camera: Camera = Camera()
    depth: Depth = Depth()
    gate: Gate = Gate()
    guard: Guard = Guard()
    recording: Recording = Recording()
    server: Server = Server()

    def motor_pins(self) -> tuple[int, ...]:
        """Every pin that can move the car; drive first."""
        drive, steer = self.motors.drive, self.motors.steer
        return (drive.forward, drive.reverse, steer.forward, steer.reverse)


COLOURS = ("red", "yellow", "green", "blue", "purple", "white")
SHAPES = ("circle", "triangle", "square", "star", "heart", "diamond")
BUTTONS = (4, 6)
CHOICES = {
    ("camera", "source"): ("bench", "stamped", "strip", "none"),
    ("depth", "source"): ("none", "v4l2", "bench"),
    ("gate", "blind"): ("stop", "limit", "ignore"),
    ("guard", "mode"): ("off", "warn", "limit"),
    ("i2c", "backend"): ("pigpio", "linux"),
}
