"""A car's profile: frozen structs with their bounds; profiles.py reads its file.

What moves the car: motors.py. Units are in the names. Pin numbers are BCM and stand in
hardware/*.toml only.
"""

from typing import Annotated, Literal

from msgspec import Meta

from fpvcar.config.base import Gpio, Positive, Section, Share
from fpvcar.config.motors import HatServo, Motors, Pca9685

Colour = Literal["red", "yellow", "green", "blue", "purple", "white"]
Shape = Literal["circle", "triangle", "square", "star", "heart", "diamond"]
GuardMode = Literal["off", "warn", "limit"]
"""The loosest first."""
Flip = Literal["none", "horizontal", "vertical", "both"]
Exposure = Literal["normal", "sport", "long"]
PixelWidth = Annotated[int, Meta(ge=64, le=1920, multiple_of=2)]
PixelHeight = Annotated[int, Meta(ge=64, le=1080, multiple_of=2)]
FramesPerS = Annotated[float, Meta(ge=1, le=120)]
NIGHT_S = 0.1
"""Longest exposure at night. A picture may be no older than `gate.blind_s`."""
Brightness = Annotated[float, Meta(ge=-1, le=1)]
PlaceM = Annotated[float, Meta(ge=-2, le=2)]
OffsetM = Annotated[float, Meta(ge=-0.5, le=0.5)]
TURN_S = 0.032
"""Between two triggers, whichever the HC-SR04: 4 m and back take 23 ms."""
CYCLE_S = 0.06
"""Between two triggers of one HC-SR04; the data sheet asks for it."""
SHORTEST_US, LONGEST_US = 100, 25_000
"""Echoes of an HC-SR04: below is noise, above (4.3 m) it only says that it heard
nothing."""


class Pins(Section, frozen=True):
    """Who drives the GPIO: the daemon pigpiod, or the kernel's /dev/gpiochipN."""

    backend: Literal["auto", "pigpio", "linux"] = "auto"
    """"pigpio" (the daemon), "linux" (/dev/gpiochipN, without a daemon: pulses of 100
    Hz at most), or "auto": linux on a Pi 5 and where pigpiod is not installed."""
    unsafe: bool = False
    """With "linux": drives although the kernel may leave a motor on whose process has
    died (no dtparam=strict_gpiod)."""
    host: str = "127.0.0.1"
    """Host on which pigpiod listens."""
    port: Annotated[int, Meta(ge=1024, le=32000)] = 8888
    """TCP port on which pigpiod listens."""


class Battery(Section, frozen=True):
    """Pack voltages; INA219 on the I2C bus where `address` is given."""

    full_v: Positive = 8.4
    """Voltage of a full pack: the page shows 100 %."""
    nominal_v: Positive = 7.5
    """Voltage to reckon motors with while nothing measures the pack."""
    empty_v: Positive = 6.2
    """Voltage of an empty pack: the page shows 0 %."""
    floor_v: Positive | None = None
    """Lowest voltage by which a motor's duty is reckoned; without it `empty_v`.
    Calibration changes `empty_v` and leaves this as it is."""
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the INA219: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x40, le=0x4F)] | None = None
    """I2C address of the INA219; without it nothing measures the pack."""
    shunt_ohm: Positive = 0.1
    """Resistance of the INA219's shunt."""
    curve: tuple[Share, ...] = (0.0, 1.0)
    """How full the pack is at even steps of voltage from `empty_v` to `full_v`; a
    straight line unless said."""

    @property
    def lowest_v(self) -> float:
        """Lowest supply voltage that `run` mixes by; `wheels` limits duties by it."""
        return self.empty_v if self.floor_v is None else self.floor_v


class I2c(Section, frozen=True):
    """Who drives the I2C buses."""

    backend: Literal["auto", "pigpio", "linux"] = "auto"
    """"pigpio" (the daemon), "linux" (/dev/i2c-N), or "auto": who drives the pins."""


class Lights(Section, frozen=True):
    """LEDs; each list may be empty."""

    head: tuple[Gpio, ...] = ()
    """Headlights; the page switches them."""
    rear: tuple[Gpio, ...] = ()
    """Reversing lights: lit while the car drives backward."""
    indicator_left: tuple[Gpio, ...] = ()
    """Left indicators: blink while the car steers left, and after a stop."""
    indicator_right: tuple[Gpio, ...] = ()
    """Right indicators: blink while the car steers right, and after a stop."""
    recorder: tuple[Gpio, ...] = ()
    """Lit while it records; blinks while it should and cannot."""
    code: tuple[Gpio, ...] = ()
    """Blinks the drive code when a page asks to drive without it: whoever sees the car
    may drive it. Without such an LED only the terminal tells the code."""


class Button(Section, frozen=True):
    """One of the children's buttons: a contact to ground, and the LED in or beside it.

    Without `button` or `led` it is on the page only. No two have a colour or a shape in
    common: one of them is enough to tell them apart.
    """

    colour: Colour
    """Colour on the page, and of the LED."""
    shape: Shape
    """Shape on the page."""
    button: Gpio | None = None
    """Contact from this GPIO to ground; the pull-up is the chip's."""
    led: Gpio | None = None
    """LED in or beside the button, through a resistor."""
    brightness: Share = 1.0
    """Brightness of the LED when it is lit: its share of the time."""


class Ultrasound(Section, frozen=True):
    """One HC-SR04: where it looks (0 is ahead, + is left)."""

    trigger: Gpio
    """Output to the sensor's Trig."""
    echo: Gpio
    """Input from the sensor's Echo: 5 V, so through a divider."""
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0
    """Where the sensor looks: 0 is ahead, 90 left, 180 back."""
    offset_m: OffsetM = 0.0
    """Added to what it measures: by how much it reads too short."""
    x_m: PlaceM = 0.0
    """Place on the car, as recordings draw it: ahead of the middle of the car."""
    y_m: PlaceM = 0.0
    """Place on the car: left of the middle."""
    z_m: PlaceM = 0.0
    """Place on the car: above the floor."""


class Tof(Section, frozen=True):
    """One VL53L0X: where it looks (0 is ahead, + is left) and where it is found.

    `power` is the GPIO of its XSHUT. All wake at 0x29: with more than one on a bus each
    needs a `power`, and an `address` of its own that it gets while the others are held
    down.
    """

    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the sensor: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x08, le=0x77)] = 0x29
    """I2C address that the sensor gets; 0x29 is where it wakes up."""
    power: Gpio | None = None
    """Output to the sensor's XSHUT; needed with more than one on a bus."""
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0
    """Where the sensor looks: 0 is ahead, 90 left, 180 back."""
    offset_m: OffsetM = 0.0
    """Added to what it measures: by how much it reads too short."""
    x_m: PlaceM = 0.0
    """Place on the car, as recordings draw it: ahead of the middle of the car."""
    y_m: PlaceM = 0.0
    """Place on the car: left of the middle."""
    z_m: PlaceM = 0.0
    """Place on the car: above the floor."""


class Sensors(Section, frozen=True):
    """Range sensors, by name: no two of any kind have the same."""

    tof: dict[str, Tof] = {}
    """VL53L0X sensors by name."""
    ultrasound: dict[str, Ultrasound] = {}
    """HC-SR04 sensors by name."""
    celsius: Annotated[float, Meta(ge=-40, le=60)] = 20.0
    """Temperature of the air: 12 degrees more make sound 2 % faster."""

    @property
    def round_s(self) -> float:
        """Time in which each HC-SR04 has measured once, in turn; 0 without one."""
        count = len(self.ultrasound)
        return max(count * TURN_S, CYCLE_S) + LONGEST_US / 1e6 if count else 0.0


class Depth(Section, frozen=True):
    """A depth camera: "v4l2" is a RealSense D4xx or what else offers Z16, "bench" looks
    into the emulated world. It counts as a range sensor called "depth"."""

    source: Literal["none", "v4l2", "bench"] = "none"
    """"none", "v4l2" (a RealSense D4xx or what else offers Z16), or "bench"."""
    device: str = ""
    """Path of the device, /dev/videoN; empty: the first that offers Z16."""
    width: Annotated[int, Meta(ge=80, le=1280)] = 480
    """Width of the depth image; the nearest that the camera has."""
    height: Annotated[int, Meta(ge=45, le=800)] = 270
    """Height of the depth image; the nearest that the camera has."""
    fps: Annotated[int, Meta(ge=10, le=90)] = 15
    """Frames a second; of fewer every other one would be older than `guard.stale_s`."""
    wide_deg: Annotated[float, Meta(ge=10, le=150)] = 87.0
    """Horizontal field of view: 87 of a D435, 65 of a D415."""
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0
    """Where the camera looks: 0 is ahead, 90 left, 180 back."""
    x_m: PlaceM = 0.0
    """Place on the car, as recordings draw it: ahead of the middle of the car."""
    y_m: PlaceM = 0.0
    """Place on the car: left of the middle."""
    z_m: PlaceM = 0.0
    """Place on the car: above the floor."""


class Camera(Section, frozen=True):
    """`command` runs any program that writes Annex B; else `source` is built in.

    "bench" shows the emulated world; for `make benchmark`, "strip" shows a clock and
    "stamped" the world with that clock above it.
    """

    source: Literal["picamera2", "rpicam", "v4l2", "bench", "stamped", "strip", "none"] = "bench"
    """Built-in camera: a Pi's own by "picamera2", or by "rpicam" where that is missing,
    which cannot lower its bitrate; "v4l2", a webcam; "bench", "strip" or "stamped" on
    the bench; or "none"."""
    command: tuple[str, ...] = ()
    """Program and arguments that write H.264 (Annex B) to stdout; wins over
    `source`."""
    device: str = ""
    """The webcam of `v4l2`, as /dev/v4l/by-id/... or /dev/videoN; empty: the first on
    USB. Which camera of a Pi, 0 or 1; empty: the first."""
    format: Literal["auto", "h264", "yuyv", "mjpeg"] = "auto"
    """What a webcam is asked for; "auto" takes the first of them that it has at this
    size and rate."""
    width: PixelWidth = 640
    """Width of the picture, even; a `command` gets it by its own arguments."""
    height: PixelHeight = 480
    """Height of the picture, even; a `command` gets it by its own arguments."""
    fps: FramesPerS = 30.0
    """Frames a second; a `command` gets them by its own arguments."""
    bitrate: Annotated[int, Meta(ge=100_000, le=25_000_000)] = 2_000_000
    """Bitrate at most; a slower link of the driver gets less."""
    gop_s: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Longest time between two key frames."""
    flip: Flip = "none"
    """Turns the picture over: "horizontal", "vertical", or "both" for a camera that
    hangs upside down."""
    exposure: Exposure = "normal"
    """Of a Pi's camera: "sport" exposes shortly, so that motion is sharp, "long" gets
    more light."""
    brightness: Brightness = 0.0
    """-1 is the darkest, 1 the brightest; 0 as the camera comes."""
    night: bool = False
    """Exposes up to 0.1 s: bright in the dark, at 10 frames a second."""
    x_m: PlaceM = 0.0
    """Place on the car, as recordings draw it: ahead of the middle of the car."""
    y_m: PlaceM = 0.0
    """Place on the car: left of the middle."""
    z_m: PlaceM = 0.0
    """Place on the car: above the floor."""


class Picture(Section, frozen=True, omit_defaults=True):
    """What a grown-up may set of the camera while the car runs; None: as it is."""

    width: PixelWidth | None = None
    height: PixelHeight | None = None
    fps: FramesPerS | None = None
    flip: Flip | None = None
    exposure: Exposure | None = None
    brightness: Brightness | None = None
    night: bool | None = None


class Gate(Section, frozen=True):
    """When the car stops by itself. The upper bounds are the design's promises."""

    silence_s: Annotated[float, Meta(ge=0.1, le=0.25)] = 0.25
    """The car stops when the driver's last fresh wish is so old."""
    stale_s: Annotated[float, Meta(ge=0.02, le=0.2)] = 0.2
    """A wish is refused that took so much longer than the fastest of the last 30 s."""
    late_s: Annotated[float, Meta(ge=0.1, le=0.4)] = 0.4
    """A wish is refused that was made on a state of the car older than this."""
    blind: Literal["stop", "limit", "ignore"] = "stop"
    """Without a picture: "stop", "limit" (to `blind_limit`) or "ignore"."""
    blind_s: Annotated[float, Meta(ge=0.05, le=0.3)] = 0.25
    """Age of the newest picture from which the car is blind."""
    blind_limit: Share = 0.3
    """Most throttle while blind, with `blind = "limit"`."""
    limit: Share = 1.0
    """Speed limit at start, as a share of full throttle."""


class Guard(Section, frozen=True):
    """The collision guard; nothing is guarded where no range sensor looks."""

    mode: GuardMode = "off"
    """"off", "warn" (the page shows it) or "limit" (throttle, too)."""
    stop_m: Annotated[float, Meta(ge=0.02, le=2)] = 0.15
    """Distance at which the car is to stand before what a sensor sees."""
    top_mps: Annotated[float, Meta(gt=0, le=10)] = 1.4
    """Speed of the car at full throttle."""
    brake_mps2: Annotated[float, Meta(gt=0, le=20)] = 0.9
    """Mean deceleration of a stop from full speed: v^2 / 2 / way."""
    reaction_s: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Time from a range to the motors, besides the range's own age."""
    stale_s: Annotated[float, Meta(gt=0, le=1)] = 0.2
    """A range that is older counts as unseen."""
    unseen_limit: Share = 0.3
    """Most throttle towards where a sensor looks and says nothing; 0 stops."""


class Speeds(Section, frozen=True):
    """Speeds that a grown-up chooses among; the third is `gate.limit`."""

    least_mps: Annotated[float, Meta(ge=0, le=10)] = 0.2
    """Speed of the car at the least throttle, just over its dead band."""
    small_child_mps: Annotated[float, Meta(gt=0, le=10)] = 0.4
    """Top speed for a small child."""
    child_mps: Annotated[float, Meta(gt=0, le=10)] = 0.8
    """Top speed for a child."""


class Recording(Section, frozen=True):
    """What happens is recorded, a minute a file."""

    on: bool = True
    """Recording at start; the page switches it."""
    directory: str = ""
    """Folder of the recordings; empty: `recordings` in the state directory."""
    segment_s: Annotated[float, Meta(ge=5, le=600)] = 60.0
    """Length of one file."""
    sync_s: Annotated[float, Meta(ge=0.1, le=1)] = 0.8
    """Time between two syncs. A pulled battery costs this and what the card needs to
    write: 1 s together."""
    keep_free_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 500
    """Space that stays free on the card: old recordings go, or recording stops."""
    max_mb: Annotated[int, Meta(ge=8, le=10_000_000)] = 8000
    """Size of all recordings together; an hour is about 1000."""
    station: bool = False
    """True where a base station fetches recordings: only what it has may go. Else
    the oldest goes."""
    minute: bool = True
    """Keeps the last minute on the card while recording is off."""


class Server(Section, frozen=True):
    """Who may ask. The IP literals, localhost and `car.name` are always allowed."""

    allowed_hosts: tuple[str, ...] = ()
    """Further host names by which browsers may ask for the car."""
    max_viewers: Annotated[int, Meta(ge=1, le=1000)] = 50
    """Sockets of each kind; whoever may drive has places beside them."""
    max_connections: Annotated[int, Meta(ge=16, le=4096)] = 256
    """TCP connections in all; some 30 kB each, more with https."""
    max_per_address: Annotated[int, Meta(ge=4, le=4096)] = 64
    """TCP connections from one IPv4 address or one IPv6 /128; twice that from a /64."""
    first_takes_wheel: bool = False
    """Whoever comes first and may drive has the wheel without asking."""


class Network(Section, frozen=True):
    """The Wi-Fi of a car with NetworkManager; the page sets which network it joins."""

    own: bool = True
    """Opens a network of the car's name where no known one is in range."""


class Rig(Section, frozen=True):
    """A car on a bench that `fpvcar hil` measures (hardware/rig.md): its own pins,
    wired to others of them through 1 kΩ. A car that drives leaves it out."""

    loops: tuple[Gpio, ...] = ()
    """Each hears one pin of the motors, in the order of their sections."""
    out: Gpio | None = None
    """Gives levels and pulses that are measured."""
    back: Gpio | None = None
    """Hears `out`."""
    echo: Gpio | None = None
    """Hears the echo of the first HC-SR04, behind its divider."""
    contact: Gpio | None = None
    """Closes the contact of the first button."""
    led: Gpio | None = None
    """An LED before the camera."""
    target_m: Annotated[float, Meta(ge=0.05, le=1.2)] | None = None
    """How far the target before the first VL53L0X is."""
    load_a: Annotated[float, Meta(gt=0, le=3)] | None = None
    """What the load behind the INA219 draws."""


class Car(Section, frozen=True):
    """What the car is called."""

    name: Annotated[str, Meta(min_length=1, max_length=24, pattern="^[A-Za-z0-9-]+$")]
    """Name on the page and of recordings; browsers may ask for NAME.local, too."""


class Profile(Section, frozen=True):
    """One car."""

    car: Car
    motors: Motors
    pins: Pins = Pins()
    battery: Battery = Battery()
    i2c: I2c = I2c()
    pca9685: Pca9685 = Pca9685()
    lights: Lights = Lights()
    buttons: dict[str, Button] = {}
    """Four to six, in this order on the page; where there are none it shows four."""
    sensors: Sensors = Sensors()
    camera: Camera = Camera()
    depth: Depth = Depth()
    gate: Gate = Gate()
    guard: Guard = Guard()
    speeds: Speeds = Speeds()
    recording: Recording = Recording()
    server: Server = Server()
    network: Network = Network()
    rig: Rig = Rig()

    def range_stale_s(self) -> float:
        """Age from which a range is old news: the guard's `stale_s`, or, if the guard
        is off and they take longer, a round of all HC-SR04 or two depth images."""
        depth_s = 2.0 / self.depth.fps if self.depth.source != "none" else 0.0
        return max(self.guard.stale_s, self.sensors.round_s, depth_s)

    def motor_pins(self) -> tuple[int, ...]:
        """Every GPIO that can move the car; drive first."""
        return tuple(gpio for motor in self.motors.pair for gpio in motor.pins())

    def stop_pins(self) -> tuple[int, ...]:
        """Every GPIO that stops the car as an input: the same, and OE, which somebody
        else pulls up."""
        oe = self.pca9685.oe if self.motors.on_hat else None
        return self.motor_pins() if oe is None else (*self.motor_pins(), oe)

    def stop_chips(self) -> tuple[tuple[int, int], ...]:
        """Bus and address of a PCA9685 that can move the car."""
        hat = self.pca9685
        return ((hat.bus, hat.address),) if self.motors.on_hat else ()

    def hat_hz(self) -> int:
        """The frequency of the PCA9685's outputs."""
        servo = any(isinstance(one, HatServo) for one in self.motors.pair)
        return self.pca9685.pwm_hz or (50 if servo else 1526)
