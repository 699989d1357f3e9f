"""Base types of a profile: bounded values, tables, errors."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

HEADER_GPIO = 27
"""Highest GPIO on the 40-pin header."""
Gpio = Annotated[int, Meta(ge=0, le=HEADER_GPIO)]
LowGpio = Annotated[int, Meta(ge=9, le=HEADER_GPIO)]
"""GPIO that is pulled down from the chip's reset on (BCM2835, table 6-31)."""
PwmGpio = Annotated[int, Meta(ge=2, le=HEADER_GPIO)]
"""GPIO that another key uses, too: its pulses are the kernel's."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0)]
SoundDevice = Annotated[str, Meta(min_length=1, max_length=80, pattern="^[\\w.,:=+-]+$")]
PLAIN = (
    "^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f"
    "\\u0890\\u0891\\u08e2\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0"
    "\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2064"
    "\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb\\U000110bd\\U000110cd\\U00013430-\\U0001343f"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0001\\U000e0020-\\U000e007f]*\\Z"
)
"""Pattern for text that has no control and format characters (Unicode Cc, Cf, Zl, Zp). Those
could forge log lines, drive a terminal, or change the direction in which a name is read. Letters
without a picture, such as U+3164, would make a name invisible."""
PersonName = Annotated[str, Meta(max_length=32, pattern=PLAIN)]
"""Name that a page shows for its user."""
BENCH_PINS: dict[str, Literal["pigpio", "linux"]] = {"pigpio": "pigpio", "kernel": "linux"}
"""Pins that a bench can emulate -> their back end in the profile."""


class ConfigError(ValueError):
    """Refusal of a profile; the text states the key, the value, and the accepted values."""


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all tables of a profile."""


def bench_module(name: str) -> str:
    """Return the module that the bench package registers as `name`.

    `name`: camera, depth, rig or supervisor. Raises ConfigError if the package is not installed.
    """
    from importlib import metadata, util  # not above: a car never needs them

    for entry in metadata.entry_points(group="fpvcar.bench", name=name):
        if util.find_spec(entry.module.partition(".")[0]) is not None:
            return entry.module
    raise ConfigError(
        "the emulated car is not installed: sudo apt install fpvcar-bench, "
        "or pip install 'fpvcar[bench]'"
    )
