"""Values measured by the car, about itself and its surroundings; no behaviour.

The state on the wire (wire/down.py) and the recordings contain them unchanged.
"""

from msgspec import Struct

from fpvcar.runtime.texts import State, Text


class Range(Struct, frozen=True):
    """Reading of one range sensor. `bearing_deg` 0 is ahead, + is left.

    `range_m` is None for "no target", `age_s` before the first measurement. `state` is "ok" or a
    description of the fault; range and age are then those of the last good measurement.
    """

    name: str
    bearing_deg: float
    range_m: float | None
    age_s: float | None
    state: State = "ok"


class Measured(Struct, frozen=True):
    """Measurement of a range sensor at `at_s` of CLOCK_MONOTONIC. `range_m` is None for "no
    target"."""

    name: str
    bearing_deg: float
    range_m: float | None
    at_s: float


class Battery(Struct, frozen=True):
    """Reading of the battery pack. `share` is the remaining charge, 0 to 1, by voltage.

    `state` is "ok" or a description of the fault; the other fields are then those of the last good
    reading, `age_s` ago. None before the first reading.
    """

    volts: float | None
    amps: float | None
    share: float | None
    low: bool
    age_s: float | None = None
    state: State = "ok"


class Guarding(Struct, frozen=True):
    """State of the collision guard; the car is to stand `stop_m` before an obstacle.

    `ahead` and `back` are the shares of full throttle that it allows (in mode "warn": would allow),
    `ahead_by` and `back_by` the sensors with the smallest shares. Unless the car's speed is
    `measured`, it helps only a little, and the car is slow.
    """

    mode: str
    stop_m: float
    ahead: float = 1.0
    back: float = 1.0
    ahead_by: str = ""
    back_by: str = ""
    measured: bool = True


class Health(Struct, frozen=True):
    """Health of the computer in the car. None is "unknown here".

    `throttled` has the firmware's bits (get_throttled). `age_s` is None before the first reading.
    """

    faults: tuple[Text, ...] = ()
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
    """Health of the storage card; None is "unknown here".

    `used` is the used share of its rated life, as reported by the card; a card over 1 is past its
    end. `volatile`: the recordings are in memory, and lost at power-off.
    """

    used: float | None = None
    read_only: bool | None = None
    volatile: bool | None = None


class Recording(Struct, frozen=True):
    """State of the recorder. `state` is "ok" or the reason why recording fails.

    `seconds` counts since it was switched on (or off). `free_mb` is the space until recordings
    without a copy on a base station must go. `kept` counts the kept minutes, `dropped` the messages
    that the card did not take. `station`: recording stops on a full card; otherwise the oldest
    recordings are deleted.
    """

    on: bool
    state: State
    seconds: float
    free_mb: float | None = None
    kept: int = 0
    dropped: int = 0
    station: bool = False
