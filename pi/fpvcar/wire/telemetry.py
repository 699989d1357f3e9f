"""What the car knows of itself and of what is around it: values, no behaviour.

The state on the wire (wire/down.py) and the recordings hold them as they are.
"""

from msgspec import Struct


class Range(Struct, frozen=True):
    """One range sensor. `bearing_deg` 0 is ahead, + is left.

    `range_m` is None for "no target", `age_s` before the first measurement. `state` is
    "ok", or says in words what is wrong; range and age are then of the last good one.
    """

    name: str
    bearing_deg: float
    range_m: float | None
    age_s: float | None
    state: str = "ok"


class Measured(Struct, frozen=True):
    """One measurement of a range sensor, at `at_s` of CLOCK_MONOTONIC. `range_m` is
    None for "no target"."""

    name: str
    bearing_deg: float
    range_m: float | None
    at_s: float


class Battery(Struct, frozen=True):
    """The pack. `share` is the charge that is left, 0 to 1, by voltage.

    `state` is "ok", or says in words what is wrong; the rest is then of the last good
    reading, which was `age_s` ago. None before the first.
    """

    volts: float | None
    amps: float | None
    share: float | None
    low: bool
    age_s: float | None = None
    state: str = "ok"


class Guarding(Struct, frozen=True):
    """The collision guard; the car is to stand `stop_m` before an obstacle.

    `ahead` and `back` are the shares of full throttle that it leaves (in mode "warn":
    would leave), `ahead_by` and `back_by` the sensors that leave least.
    """

    mode: str
    stop_m: float
    ahead: float = 1.0
    back: float = 1.0
    ahead_by: str = ""
    back_by: str = ""


class Health(Struct, frozen=True):
    """The computer in the car. `faults` are sentences; None is "unknown here".

    `throttled` has the firmware's bits (get_throttled). `age_s` None: not read yet.
    """

    faults: tuple[str, ...] = ()
    celsius: float | None = None
    throttled: int | None = None
    wifi_dbm: float | None = None
    wifi_mbps: float | None = None
    disk_free_mb: float | None = None
    memory_free_mb: float | None = None
    load: float | None = None
    uptime_s: float | None = None
    age_s: float | None = None


class Card(Struct, frozen=True):
    """What the car writes on; None is "unknown here".

    `used` is the share of its life, by its own word; over 1 it is past its end.
    """

    used: float | None = None
    read_only: bool | None = None


class Recording(Struct, frozen=True):
    """The recorder. `state` is "ok", or says in words why nothing is recorded.

    `seconds` since it was switched on (or off), `free_mb` until something must go that
    no base station has, `kept`: how often a minute was kept, `dropped`: messages that
    the card did not take. `station`: without room recording stops; else the oldest go.
    """

    on: bool
    state: str
    seconds: float
    free_mb: float | None = None
    kept: int = 0
    dropped: int = 0
    station: bool = False
