"""Schema of a car's profile: frozen structs with bounds; profiles.py reads the file.

Drive hardware: motors.py; sensors: sensors.py; network: network.py. Units are part of the names.
Pin numbers are BCM and are set in hardware/*.toml only.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from fpvcar.config.base import Gpio, Positive, PwmGpio, Section, Share, SoundDevice
from fpvcar.config.motors import ChipStop, Motors, Pca9685, PwmStop
from fpvcar.config.network import Mqtt, Network
from fpvcar.config.sensors import Depth, Mounted, Sensors
from fpvcar.config.server import Server
from fpvcar.config.servos import AimServo, chip_turns_servos

Colour = Literal["red", "yellow", "green", "blue", "purple", "white"]
Shape = Literal["circle", "triangle", "square", "star", "heart", "diamond"]
GuardMode = Literal["off", "warn", "limit"]
"""Modes of the guard, the least strict first."""
Flip = Literal["none", "horizontal", "vertical", "both"]
Exposure = Literal["normal", "sport", "long"]
View = Literal["whole", "fast"]
PixelWidth = Annotated[int, Meta(ge=64, le=1920, multiple_of=2)]
PixelHeight = Annotated[int, Meta(ge=64, le=1080, multiple_of=2)]
FramesPerS = Annotated[float, Meta(ge=1, le=120)]
NIGHT_S = 0.1
"""Longest exposure at night. A picture may be no older than `gate.blind_s`."""
Brightness = Annotated[float, Meta(ge=-1, le=1)]


class Pins(Section, frozen=True):
    """Back end of the GPIO: the daemon pigpiod, or the kernel's /dev/gpiochipN."""

    backend: Literal["auto", "pigpio", "linux"] = "auto"
    """"pigpio" (the daemon), "linux" (/dev/gpiochipN, without a daemon: pulses of 100 Hz at
    most, except on `pwm`), or "auto": linux on a Pi 5 and on systems that have no pigpiod."""
    unsafe: bool = False
    """For "linux": drive even if the kernel may leave a motor on after its process has died (no
    dtparam=strict_gpiod)."""
    pwm: tuple[PwmGpio, ...] = ()
    """For "linux": pins of motors and servos whose pulses the kernel's PWM makes, at the motor's
    `pwm_hz`; a thread makes those of all others, at 100 Hz. For motors one of GPIO 12 and 18,
    and one of 13 and 19; for a servo any. `fpvcar setup` writes the dtoverlay."""
    pwm_device: Annotated[str, Meta(min_length=1, max_length=40, pattern="^[\\w.@-]+$")] = "auto"
    """PWM device of the motors, the last part of /sys/class/pwm/pwmchipN/device; "auto": a
    Raspberry Pi's."""
    host: str = "127.0.0.1"
    """Host on which pigpiod listens."""
    port: Annotated[int, Meta(ge=1024, le=32000)] = 8888
    """TCP port on which pigpiod listens."""


class Battery(Section, frozen=True):
    """Pack voltages; INA219 on the I2C bus if `address` is given."""

    full_v: Positive = 8.4
    """Voltage of a full pack: the page shows 100 %."""
    nominal_v: Positive = 7.5
    """Supply voltage for the computation of duties while the pack is not measured."""
    empty_v: Positive = 6.2
    """Voltage of an empty pack: the page shows 0 %."""
    floor_v: Positive | None = None
    """Lowest supply voltage for the computation of duties; the default is `empty_v`. Calibration
    changes `empty_v` and leaves this value unchanged."""
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the INA219: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x40, le=0x4F)] | None = None
    """I2C address of the INA219; without it the pack is not measured."""
    shunt_ohm: Positive = 0.1
    """Resistance of the INA219's shunt."""
    curve: tuple[Share, ...] = (0.0, 1.0)
    """Charge of the pack at even steps of voltage from `empty_v` to `full_v`; the default is a
    straight line."""

    @property
    def lowest_v(self) -> float:
        """Lowest supply voltage used by `run` for mixing; `wheels` limits duties by it."""
        return self.empty_v if self.floor_v is None else self.floor_v


class I2c(Section, frozen=True):
    """Back end of the I2C buses."""

    backend: Literal["auto", "pigpio", "linux"] = "auto"
    """"pigpio" (the daemon), "linux" (/dev/i2c-N), or "auto": the back end of the pins."""


class Lights(Section, frozen=True):
    """LEDs of the car; each list may be empty."""

    head: tuple[Gpio, ...] = ()
    """Headlights; the page switches them."""
    rear: tuple[Gpio, ...] = ()
    """Reversing lights: lit while the car drives backward."""
    indicator_left: tuple[Gpio, ...] = ()
    """Left indicators: blink while the car steers left, and after a stop."""
    indicator_right: tuple[Gpio, ...] = ()
    """Right indicators: blink while the car steers right, and after a stop."""
    recorder: tuple[Gpio, ...] = ()
    """Recording light: lit during recording; blinks if recording is on but fails."""
    code: tuple[Gpio, ...] = ()
    """LED that blinks the drive code when a page requests to drive without it: a person who sees
    the car may drive it. Without this LED only the terminal shows the code."""


class Button(Section, frozen=True):
    """Children's button: a contact to ground, and the LED in or beside it.

    Without `button` or `led` it is on the page only. All colours and all shapes differ, as each
    alone must identify a button.
    """

    colour: Colour
    """Colour on the page, and of the LED."""
    shape: Shape
    """Shape of the button on the page."""
    button: Gpio | None = None
    """Contact from this GPIO to ground; the pull-up is the chip's."""
    led: Gpio | None = None
    """LED in or beside the button, through a resistor."""
    brightness: Share = 1.0
    """Brightness of the LED when it is lit: its share of the time."""


class Camera(Mounted, frozen=True):
    """Camera: `command` runs any program that writes Annex B; otherwise `source` selects a
    built-in one.

    "bench" shows the emulated world; for `make benchmark`, "strip" shows a clock and "stamped" the
    world with that clock above it.

    `[camera]` is the car's first camera, which recordings have. `[cameras.NAME]` adds at most one
    more: a small picture on the page, with this name. Its program runs only while a page shows it.
    """

    source: Literal["picamera2", "rpicam", "v4l2", "bench", "stamped", "strip", "none"] = "bench"
    """Built-in camera: "picamera2" for a Pi's own camera, or "rpicam" if picamera2 is missing
    ("rpicam" cannot lower its bitrate); "v4l2", a webcam; "bench", "strip" or "stamped" on
    the bench; or "none"."""
    command: tuple[str, ...] = ()
    """Program and arguments that write H.264 (Annex B) to stdout; takes precedence over
    `source`."""
    device: str = ""
    """Device of the webcam for `v4l2`, /dev/v4l/by-id/... or /dev/videoN; empty: the first on
    USB. For a Pi's own camera its number, 0 or 1; empty: the first."""
    format: Literal["auto", "h264", "yuyv", "mjpeg"] = "auto"
    """Format requested from a webcam; "auto" takes the first of these that it offers at this
    size and rate."""
    width: PixelWidth = 640
    """Width of the picture, even; a `command` gets it by its own arguments."""
    height: PixelHeight = 480
    """Height of the picture, even; a `command` gets it by its own arguments."""
    fps: FramesPerS = 30.0
    """Frames per second; a `command` gets them by its own arguments. Above 30 the car falls to 30
    while heat, load or the link ask for it."""
    view: View = "whole"
    """Sensor mode of a Pi's camera: "whole" shows the widest view and lowers `fps` to the mode's
    limit; "fast" keeps `fps`, if a mode with a part of the view has it."""
    bitrate: Annotated[int, Meta(ge=100_000, le=25_000_000)] = 2_000_000
    """Highest bitrate; a slower link to the driver lowers it."""
    gop_s: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Longest time between two key frames."""
    flip: Flip = "none"
    """Mirroring of the picture: "horizontal", "vertical", or "both" for a camera that hangs
    upside down."""
    exposure: Exposure = "normal"
    """Exposure of a Pi's camera: "sport" keeps it short, so that motion is sharp, "long" gets
    more light."""
    brightness: Brightness = 0.0
    """Brightness from -1, the darkest, to 1, the brightest; 0 is the camera's default."""
    night: bool = False
    """Night mode: exposure up to 0.1 s, bright in the dark, at 10 frames per second."""
    fov_deg: Annotated[float, Meta(ge=10, le=150)] | None = None
    """Horizontal field of view of the picture at `width`, `height` and `view`; recordings then
    have the camera's intrinsics, for a lens that does not bend straight lines."""


class Picture(Section, frozen=True, omit_defaults=True):
    """Camera settings that a grown-up may change while the car runs; None: unchanged."""

    width: PixelWidth | None = None
    height: PixelHeight | None = None
    fps: FramesPerS | None = None
    view: View | None = None
    flip: Flip | None = None
    exposure: Exposure | None = None
    brightness: Brightness | None = None
    night: bool | None = None


class Gate(Section, frozen=True):
    """Conditions for an automatic stop. The upper bounds are guarantees of the design."""

    silence_s: Annotated[float, Meta(ge=0.1, le=0.25)] = 0.25
    """Age of the driver's last fresh wish at which the car stops."""
    stale_s: Annotated[float, Meta(ge=0.02, le=0.2)] = 0.2
    """Delay by which a wish may exceed the fastest of the last 30 s; later wishes are refused."""
    late_s: Annotated[float, Meta(ge=0.1, le=0.4)] = 0.4
    """Largest age of the car's state that a wish may be based on; later wishes are refused."""
    blind: Literal["stop", "limit", "ignore"] = "stop"
    """Reaction to a missing picture: "stop", "limit" (to `blind_limit`) or "ignore"."""
    blind_s: Annotated[float, Meta(ge=0.05, le=0.3)] = 0.25
    """Age of the newest picture from which the car is blind."""
    blind_limit: Share = 0.3
    """Highest throttle while blind, with `blind = "limit"`."""
    limit: Share = 1.0
    """Speed limit at start, as a share of full throttle."""


class Guard(Section, frozen=True):
    """Collision guard. Directions that no range sensor covers are unguarded."""

    mode: GuardMode = "off"
    """"off", "warn" (the page shows it) or "limit" (throttle, too). `fpvcar setup` writes "limit"
    for a car with range sensors."""
    measured: bool = True
    """Whether `top_mps` and `brake_mps2` are this car's. Without that "limit" also limits throttle
    to 0.4. `fpvcar setup` writes false; calibration of the speed sets it."""
    stop_m: Annotated[float, Meta(ge=0.02, le=2)] = 0.15
    """Distance at which the car is to stop in front of an obstacle."""
    top_mps: Annotated[float, Meta(gt=0, le=10)] = 1.4
    """Speed of the car at full throttle."""
    brake_mps2: Annotated[float, Meta(gt=0, le=20)] = 0.9
    """Mean deceleration of a stop from full speed: v^2 / 2 / way."""
    reaction_s: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Time from a range to the motors, in addition to the range's own age."""
    stale_s: Annotated[float, Meta(gt=0, le=1)] = 0.2
    """Largest age of a range; older ones count as unseen."""
    unseen_limit: Share = 0.3
    """Highest throttle towards a sensor that gives no reading; 0 stops."""


class Speeds(Section, frozen=True):
    """Speeds that a grown-up chooses among; the third is `gate.limit`."""

    least_mps: Annotated[float, Meta(ge=0, le=10)] = 0.2
    """Speed of the car at the least throttle, just over its dead band."""
    small_child_mps: Annotated[float, Meta(gt=0, le=10)] = 0.4
    """Top speed for a small child."""
    child_mps: Annotated[float, Meta(gt=0, le=10)] = 0.8
    """Top speed for a child."""


class Recording(Section, frozen=True):
    """Recording of drives, in files of a minute each."""

    on: bool = True
    """Recording at start; the page switches it."""
    directory: str = ""
    """Folder of the recordings; empty: `recordings` in the state directory."""
    segment_s: Annotated[float, Meta(ge=5, le=600)] = 60.0
    """Length of one recorded file."""
    sync_s: Annotated[float, Meta(ge=0.1, le=1)] = 0.8
    """Time between two syncs; a pulled battery loses it and the card's write time: 1 s in all."""
    keep_free_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 500
    """Space that stays free on the card: old recordings are removed, or recording stops."""
    max_mb: Annotated[int, Meta(ge=8, le=10_000_000)] = 8000
    """Size of all recordings together; an hour is about 1000."""
    station: bool = False
    """True if a base station fetches recordings: only fetched ones may be removed. Otherwise the
    oldest is removed."""
    minute: bool = True
    """Whether to keep the last minute on the card while recording is off."""


class Intercom(Section, frozen=True):
    """Intercom between the car and its driver, by the programs of alsa-utils. It works over https
    only, after a grown-up has switched it on in the menu. Without this section the car has none."""

    speaker: SoundDevice | None = None
    """ALSA device of the speaker: "default", or a name that `aplay -L` lists."""
    microphone: SoundDevice | None = None
    """ALSA device of the microphone: "default", or a name that `arecord -L` lists."""

    @property
    def present(self) -> bool:
        """Whether the car has an intercom."""
        return self.speaker is not None or self.microphone is not None


class Rig(Section, frozen=True):
    """Test car that `fpvcar hil` measures (hardware/rig.md): pins wired to its other pins through
    1 kΩ. A car for driving leaves this section out."""

    loops: tuple[Gpio, ...] = ()
    """Inputs that monitor one output of the motors each, in the order of their sections."""
    servo: Gpio | None = None
    """Input that monitors the first servo of `[servos]`."""
    out: Gpio | None = None
    """Output for levels and pulses that are measured."""
    back: Gpio | None = None
    """Input that is wired to `out`."""
    echo: Gpio | None = None
    """Input for the echo of the first HC-SR04, behind its divider."""
    contact: Gpio | None = None
    """Output that closes the contact of the first button."""
    led: Gpio | None = None
    """LED in front of the camera."""
    photodiode: Gpio | None = None
    """Input for the digital output of a light sensor on the browser's screen."""
    target_m: Annotated[float, Meta(ge=0.05, le=1.2)] | None = None
    """Distance of the target in front of the first VL53L0X."""
    load_a: Annotated[float, Meta(gt=0, le=3)] | None = None
    """Current of the load behind the INA219."""


class Car(Section, frozen=True):
    """Identity of the car in its network."""

    name: Annotated[str, Meta(min_length=1, max_length=24, pattern="^[A-Za-z0-9-]+$")]
    """Name on the page and of recordings; browsers may request NAME.local, too."""


class Profile(Section, frozen=True):
    """Profile of one car, as read from its file."""

    car: Car
    motors: Motors
    servos: dict[str, AimServo] = {}
    """Servos that do not steer, at most six, by name; pan and tilt turn the camera."""
    pins: Pins = Pins()
    battery: Battery = Battery()
    i2c: I2c = I2c()
    pca9685: Pca9685 = Pca9685()
    lights: Lights = Lights()
    buttons: dict[str, Button] = {}
    """Buttons in their order on the page, three to six; without this section it shows four."""
    sensors: Sensors = Sensors()
    camera: Camera = Camera()
    cameras: dict[str, Camera] = {}
    """At most one camera besides `camera`."""
    depth: Depth = Depth()
    gate: Gate = Gate()
    guard: Guard = Guard()
    speeds: Speeds = Speeds()
    recording: Recording = Recording()
    server: Server = Server()
    network: Network = Network()
    mqtt: Mqtt = Mqtt()
    intercom: Intercom = Intercom()
    rig: Rig = Rig()

    def range_stale_s(self) -> float:
        """Return the age from which a range is outdated: the guard's `stale_s`, or a round of
        all HC-SR04 or two depth images, if the guard is off and these take longer."""
        depth_s = 2.0 / self.depth.fps if self.depth.source != "none" else 0.0
        return max(self.guard.stale_s, self.sensors.round_s, depth_s)

    def motor_pins(self) -> tuple[int, ...]:
        """Return every GPIO that can move the car; drive first."""
        return tuple(gpio for motor in self.motors.pair for gpio in motor.pins())

    def line_pins(self) -> tuple[int, ...]:
        """Return the motor pins without those on the kernel's PWM."""
        return tuple(gpio for gpio in self.motor_pins() if gpio not in self.pins.pwm)

    def stop_pins(self) -> tuple[int, ...]:
        """Return every GPIO that stops the car as an input: the motor pins without the kernel's
        PWM, and OE with its external pull-up."""
        oe = self.pca9685.oe if self.motors.on_hat else None
        return self.line_pins() if oe is None else (*self.line_pins(), oe)

    def stop_pwm(self) -> tuple[PwmStop, ...]:
        """Return each motor pin on the kernel's PWM, and how to stop it."""
        return self.motors.pwm_stops(self.pins.pwm, self.pins.pwm_device)

    def stops(self) -> tuple[Sequence[int], Sequence[ChipStop], Sequence[PwmStop]]:
        """Return everything that a stop past all daemons needs: pins, chips and PWM."""
        return self.stop_pins(), self.stop_chips(), self.stop_pwm()

    def stop_chips(self) -> tuple[ChipStop, ...]:
        """Return a PCA9685 that can move the car, and how to stop it."""
        hat, servos = self.pca9685, chip_turns_servos(self)
        return (self.motors.chip_stop(hat, servos),) if self.motors.on_hat else ()

    def hat_hz(self) -> int:
        """Return the frequency of the PCA9685's outputs."""
        return self.pca9685.pwm_hz or (50 if chip_turns_servos(self) else 1526)
