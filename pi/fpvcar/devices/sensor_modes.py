"""Modes of the sensors in a Pi's cameras, and the choice of one for a picture. Pure.

Neither picamera2 nor rpicam-vid counts the field of view when it chooses a mode: at 640x480 the
Camera Module 2 would show 39 % of its width. Sizes, rates and crops are those of `rpicam-hello
--list-cameras` in public reports; some kernels print other rates for OV5647 and IMX477. A readout
is lines x line time of the driver (raspberrypi/linux drivers/media/i2c).
"""

import math
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fpvcar.config import Camera
from fpvcar.runtime.texts import Phrase, Text

CAMERA_RATE_FAST = Phrase(
    "camera_rate_fast",
    'the whole view has {most} of {fps} frames per second; the view "fast" has {fast}, with '
    "{across} % × {down} % of the sensor",
)
CAMERA_MODE_LENS = Phrase(
    "camera_mode_lens",
    "{sensor}: {width} × {height}, {bits} bits; the picture has {across} % × {down} % of the "
    "sensor, its angle depends on the lens; up to {fps} frames per second, readout {readout} "
    "ms",
)
CAMERA_MODE = Phrase(
    "camera_mode",
    "{sensor}: {width} × {height}, {bits} bits; the picture is {degrees}° wide, {across} % × "
    "{down} % of the sensor; up to {fps} frames per second, readout {readout} ms",
)
CAMERA_RATE_MOST = Phrase(
    "camera_rate_most",
    "this sensor has at most {most} of {fps} frames per second; choose a lower rate",
)
CAMERA_MODE_UNKNOWN = Phrase(
    "camera_mode_unknown",
    "{sensor}: a sensor without a table of modes; its program chooses one, and the picture "
    "may show a part of the view",
)


class Mode(NamedTuple):
    """Mode of a sensor; `crop`: the part that it reads, in pixels of the whole sensor.

    `readout_ms`: time from the first line to the last, by which moving things lean.
    """

    width: int
    height: int
    bits: int
    fps: float
    crop: tuple[int, int]
    readout_ms: float | None


class Sensor(NamedTuple):
    """Sensor of a camera; `fov_deg`: horizontal, of all pixels; None if that depends on the
    lens."""

    camera: str
    size: tuple[int, int]
    fov_deg: float | None
    modes: tuple[Mode, ...]


_OV5647 = (
    Mode(640, 480, 10, 62.5, (2560, 1920), 15),
    Mode(1296, 972, 10, 46.0, (2592, 1944), 23),
    Mode(1920, 1080, 10, 33.0, (1928, 1080), 32),
    Mode(2592, 1944, 10, 15.6, (2592, 1944), 63),
)
_IMX219 = (
    Mode(640, 480, 10, 206.0, (1280, 960), 4.5),
    Mode(1640, 1232, 10, 41.85, (3280, 2464), 23),
    Mode(1640, 1232, 8, 83.7, (3280, 2464), 12),
    Mode(1920, 1080, 10, 47.6, (1920, 1080), 20),
    Mode(3280, 2464, 10, 21.2, (3280, 2464), 47),
)
_IMX708 = (
    Mode(1536, 864, 10, 120.0, (3072, 1728), 8),
    Mode(2304, 1296, 10, 56.0, (4608, 2592), 17),
    Mode(4608, 2592, 10, 14.4, (4608, 2592), 68),
)
_IMX477 = (
    Mode(1332, 990, 10, 120.0, (2664, 1980), 8),
    Mode(2028, 1080, 12, 50.0, (4056, 2160), 16),
    Mode(2028, 1520, 12, 40.0, (4056, 3040), 23),
    Mode(4056, 3040, 12, 10.0, (4056, 3040), 87),
)
_IMX296 = (Mode(1456, 1088, 10, 60.4, (1456, 1088), 0),)
_IMX500 = (
    Mode(2028, 1520, 10, 30.0, (4056, 3040), None),
    Mode(4056, 3040, 10, 10.0, (4056, 3040), None),
)
SENSORS = {
    "ov5647": Sensor("Camera Module 1", (2592, 1944), 53.5, _OV5647),
    "imx219": Sensor("Camera Module 2", (3280, 2464), 62.2, _IMX219),
    "imx708": Sensor("Camera Module 3", (4608, 2592), 66.0, _IMX708),
    "imx708_wide": Sensor("Camera Module 3 Wide", (4608, 2592), 102.0, _IMX708),
    "imx477": Sensor("HQ Camera", (4056, 3040), None, _IMX477),
    "imx296": Sensor("Global Shutter Camera", (1456, 1088), None, _IMX296),
    "imx500": Sensor("AI Camera", (4056, 3040), 66.0, _IMX500),
}
"""Sensors by the name that libcamera gives them."""
WHOLE = 0.95
"""Share of the largest visible area that counts as the whole view."""


def sensor_of(model: str) -> Sensor | None:
    """Return the sensor of this name; its variant without infrared filter has the same modes."""
    return SENSORS.get(model.removesuffix("_noir"))


def visible(sensor: Sensor, mode: Mode, camera: Camera) -> tuple[float, float]:
    """Return the shares of the sensor's width and height in the picture, which the camera cuts to
    the shape of `camera`."""
    aspect, (width, height) = camera.width / camera.height, mode.crop
    across, down = min(width, height * aspect), min(height, width / aspect)
    return across / sensor.size[0], down / sensor.size[1]


def fov_deg(sensor: Sensor, mode: Mode, camera: Camera) -> float | None:
    """Return the horizontal field of view of the picture; None if that depends on the lens."""
    if sensor.fov_deg is None:
        return None
    half = math.tan(math.radians(sensor.fov_deg) / 2.0) * visible(sensor, mode, camera)[0]
    return math.degrees(2.0 * math.atan(half))


def choose(sensor: Sensor, camera: Camera) -> Mode:
    """Return the mode for a picture.

    The whole view comes before the rate, or the other way round. Then come enough pixels, more bits
    (less noise), and a short readout.
    """
    areas = {mode: math.prod(visible(sensor, mode, camera)) for mode in sensor.modes}
    whole = WHOLE * max(areas.values())

    def score(mode: Mode) -> tuple[float, ...]:
        view = min(areas[mode], whole)
        rate = min(mode.fps, camera.fps)
        order = (view, rate) if camera.view == "whole" else (rate, view)
        sharp = mode.width >= camera.width and mode.height >= camera.height
        return (*order, sharp, mode.bits, -(mode.readout_ms or 0.0))

    return max(sensor.modes, key=score)


def within_mode(model: str, camera: Camera) -> tuple[Camera, Mode | None]:
    """Return the settings within the rate of the sensor's mode, and that mode; for an unknown
    sensor the settings as they are."""
    if (sensor := sensor_of(model)) is None:
        return camera, None
    mode = choose(sensor, camera)
    return msgspec.structs.replace(camera, fps=min(camera.fps, mode.fps)), mode


class ModeReport(Struct, frozen=True):
    """Mode of a camera in words. `rate`: the reason for a lower rate, and the other choice."""

    text: Text
    known: bool = True
    rate: Text | None = None


def report(model: str, camera: Camera) -> ModeReport:
    """Describe the mode that these settings have on the sensor of this name."""
    sensor = sensor_of(model)
    if sensor is None:
        return ModeReport(CAMERA_MODE_UNKNOWN(sensor=model), known=False)
    mode = choose(sensor, camera)
    across, down = visible(sensor, mode, camera)
    angle = fov_deg(sensor, mode, camera)
    values = {
        "sensor": model,
        "width": mode.width,
        "height": mode.height,
        "bits": mode.bits,
        "across": f"{100 * across:.0f}",
        "down": f"{100 * down:.0f}",
        "fps": f"{mode.fps:g}",
        "readout": "?" if mode.readout_ms is None else f"{mode.readout_ms:g}",
    }
    if angle is None:
        text = CAMERA_MODE_LENS(**values)
    else:
        text = CAMERA_MODE(degrees=f"{angle:.0f}", **values)
    return ModeReport(text, rate=_rate(sensor, mode, camera))


def _rate(sensor: Sensor, mode: Mode, camera: Camera) -> Text | None:
    if mode.fps >= camera.fps:
        return None
    values = {"most": f"{mode.fps:g}", "fps": f"{camera.fps:g}"}
    other = choose(sensor, msgspec.structs.replace(camera, view="fast"))
    if min(other.fps, camera.fps) <= mode.fps:
        return CAMERA_RATE_MOST(**values)
    across, down = visible(sensor, other, camera)
    fast = f"{min(other.fps, camera.fps):g}"
    shares = {"across": f"{100 * across:.0f}", "down": f"{100 * down:.0f}"}
    return CAMERA_RATE_FAST(fast=fast, **shares, **values)


def table(camera: Camera) -> list[str]:
    """Return a table of the modes that these settings have on each sensor, and a line for each
    lower rate."""
    title = f"{camera.width}x{camera.height} at {camera.fps:g} fps, view = {camera.view}"
    form = "{:12} {:22} {:13} {:>5} {:>10} {:>7} {:>10}".format
    lines = [title, form("sensor", "camera", "mode", "wide", "of sensor", "fps", "readout")]
    rates = []
    for name, sensor in SENSORS.items():
        mode = choose(sensor, camera)
        across, down = visible(sensor, mode, camera)
        angle = fov_deg(sensor, mode, camera)
        size, view = f"{mode.width}x{mode.height}:{mode.bits}", f"{across:.0%} x {down:.0%}"
        degrees = "lens" if angle is None else f"{angle:.0f}°"
        readout = "?" if mode.readout_ms is None else f"{mode.readout_ms:g} ms"
        lines.append(form(name, sensor.camera, size, degrees, view, f"{mode.fps:g}", readout))
        if rate := _rate(sensor, mode, camera):
            rates.append(f"{name}: {rate}")
    return lines + rates
