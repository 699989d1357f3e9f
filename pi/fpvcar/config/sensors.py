"""Sensors in a car's profile: time of flight, ultrasound, and the depth camera."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from fpvcar.config.base import Gpio, Section

PlaceM = Annotated[float, Meta(ge=-2, le=2)]
OffsetM = Annotated[float, Meta(ge=-0.5, le=0.5)]
TURN_S = 0.032
"""Time between two triggers of different HC-SR04: 4 m and back take 23 ms."""
CYCLE_S = 0.06
"""Time between two triggers of one HC-SR04, by its data sheet."""
SHORTEST_US, LONGEST_US = 100, 25_000
"""Valid echoes of an HC-SR04. Shorter ones are noise; longer ones (4.3 m) mean that no echo came
back."""


class Mounted(Section, frozen=True):
    """Part with a place on the car."""

    x_m: PlaceM = 0.0
    """Place on the car, as recordings draw it: ahead of the middle of the car."""
    y_m: PlaceM = 0.0
    """Place on the car: left of the middle."""
    z_m: PlaceM = 0.0
    """Place on the car: above the floor."""


class RangeSensor(Mounted, frozen=True, kw_only=True):
    """Range sensor with its direction; a field of `Sensors` names each kind."""

    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0
    """Direction of the sensor: 0 is ahead, 90 left, 180 back."""
    offset_m: OffsetM = 0.0
    """Correction added to the reading: positive if the sensor reads too short."""

    @property
    def i2c_place(self) -> tuple[int, int] | None:
        """I2C bus and address; None without a bus."""
        return None

    @property
    def resettable(self) -> bool:
        """Whether a pin can hold the sensor in reset."""
        return False


class Ultrasound(RangeSensor, frozen=True, kw_only=True):
    """HC-SR04 ultrasound sensor with its direction (0 is ahead, + is left)."""

    trigger: Gpio
    """Output to the sensor's Trig."""
    echo: Gpio
    """Input from the sensor's Echo: 5 V, so through a divider."""


class Tof(RangeSensor, frozen=True, kw_only=True):
    """Time-of-flight sensor with its direction (0 is ahead, + is left) and I2C address.

    `power` is the GPIO of its XSHUT. All wake at 0x29: with more than one on a bus each needs a
    `power`, and its own `address`, which is set while the others are held down.
    """

    chip: Literal["VL53L0X", "VL53L1X", "VL53L3CX", "VL53L4CD"] = "VL53L0X"
    """Chip of the module. The car recognises each of them, whatever is given here: drawings and
    the bench follow it."""
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the sensor: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x08, le=0x77)] = 0x29
    """I2C address that the sensor gets; 0x29 after power-on."""
    power: Gpio | None = None
    """Output to the sensor's XSHUT; needed with more than one on a bus."""

    @property
    def i2c_place(self) -> tuple[int, int]:
        return self.bus, self.address

    @property
    def resettable(self) -> bool:
        return self.power is not None


class Tfmini(RangeSensor, frozen=True, kw_only=True):
    """TFmini-S sensor with its direction (0 is ahead, + is left), on a serial port or on I2C."""

    device: str = ""
    """Serial port of the sensor, e.g. /dev/serial0; empty: I2C."""
    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the sensor: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x08, le=0x77)] = 0x10
    """I2C address of the sensor, once it is in I2C mode."""

    @property
    def i2c_place(self) -> tuple[int, int] | None:
        return None if self.device else (self.bus, self.address)


class Sensors(Section, frozen=True):
    """Range sensors by name; all names differ, across all kinds."""

    tof: dict[str, Tof] = {}
    """Time-of-flight sensors by name, e.g. front."""
    ultrasound: dict[str, Ultrasound] = {}
    """HC-SR04 sensors by name, e.g. rear."""
    tfmini: dict[str, Tfmini] = {}
    """TFmini-S sensors by name."""
    celsius: Annotated[float, Meta(ge=-40, le=60)] = 20.0
    """Temperature of the air: 12 degrees more make sound 2 % faster."""

    def every(self) -> Iterator[tuple[str, str, RangeSensor]]:
        """Yield kind, name and section of each sensor: "tof", "front", Tof(...)."""
        for kind in self.__struct_fields__:
            sensors = getattr(self, kind)
            if isinstance(sensors, dict):
                yield from ((kind, name, sensor) for name, sensor in sensors.items())

    @property
    def round_s(self) -> float:
        """Time in which each HC-SR04 has measured once, in turn; 0 without one."""
        count = len(self.ultrasound)
        return max(count * TURN_S, CYCLE_S) + LONGEST_US / 1e6 if count else 0.0


class Depth(Mounted, frozen=True):
    """Depth camera: "v4l2" is a RealSense D4xx or another Z16 camera, "bench" renders the
    emulated world. It counts as a range sensor called "depth"."""

    source: Literal["none", "v4l2", "bench"] = "none"
    """"none", "v4l2" (a RealSense D4xx or another Z16 camera), or "bench"."""
    device: str = ""
    """Path of the device, /dev/videoN; empty: the first that offers Z16."""
    width: Annotated[int, Meta(ge=80, le=1280)] = 480
    """Width of the depth image; the nearest available one is used."""
    height: Annotated[int, Meta(ge=45, le=800)] = 270
    """Height of the depth image; the nearest available one is used."""
    fps: Annotated[int, Meta(ge=10, le=90)] = 15
    """Frames per second; with fewer, every other frame would be older than `guard.stale_s`."""
    wide_deg: Annotated[float, Meta(ge=10, le=150)] = 87.0
    """Horizontal field of view: 87 for a D435, 65 for a D415."""
    bearing_deg: Annotated[float, Meta(ge=-180, le=180)] = 0.0
    """Direction of the camera: 0 is ahead, 90 left, 180 back."""
