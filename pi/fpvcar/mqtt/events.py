"""State and events of one car, from its answers. Pure.

    Live, Memory -> state_of   JSON of the topic state
                 -> observe    events since the last answer, and the new Memory

The car counts its stops, so that none is lost between two answers. The memory is saved with the
events: after a restart no event is lost or reported twice.
"""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fpvcar.wire.station import Live

HANDOVER = "handover"
"""Wait for the first neutral wish of a new driver; no stop."""
OLD_S = 1.5
"""Age in seconds above which the last reading of a sensor is unknown."""
EVENTS = ("drive_began", "drive_ended", "stop", "battery_low", "recording_full")


class Event(Struct, frozen=True, omit_defaults=True):
    """Payload of the topic event. `count`: stops of that cause since the last event."""

    event_type: str
    time: str
    id: int = 0
    driver: str = ""
    seconds: float = 0.0
    cause: str = ""
    by: str = ""
    count: int = 1
    volts: float = 0.0
    battery: float = -1.0


class Memory(Struct, frozen=True):
    """Car at its last answer. Times in UTC."""

    run: str = ""
    driver: str | None = None
    began_s: float = 0.0
    stops: dict[str, int] = {}
    low: bool = False
    full: bool = False
    last_stop: str | None = None
    last_stop_s: float = 0.0


def utc_text(utc_s: float) -> str:
    """Format a time as ISO 8601, in UTC."""
    return datetime.fromtimestamp(utc_s, UTC).isoformat(timespec="milliseconds")


def observe(memory: Memory | None, live: Live, now_s: float) -> tuple[Memory, list[Event]]:
    """Return the new memory and the events since `memory`; None before the first answer."""
    first, before = memory is None, memory or Memory()
    after = replace(
        before,
        run=live.run,
        driver=live.driver,
        stops=live.stops,
        low=live.battery is not None and live.battery.low,
        full=_is_full(live),
    )
    time, events = utc_text(now_s), list[Event]()
    if live.driver != before.driver and before.driver is not None:
        seconds = round(max(0.0, now_s - before.began_s), 1)
        events.append(Event("drive_ended", time, driver=before.driver, seconds=seconds))
    if live.driver != before.driver and live.driver is not None:
        after = replace(after, began_s=now_s)
        events.append(Event("drive_began", time, driver=live.driver))
    counted = before.stops if live.run == before.run else {}
    for cause, count in live.stops.items():
        new = 0 if first else count - counted.get(cause, 0)
        if new > 0:
            after = replace(after, last_stop=cause, last_stop_s=now_s)
            by = live.stopped_by if live.stop == cause else ""
            driver = live.driver or ""
            events.append(Event("stop", time, driver=driver, cause=cause, by=by, count=new))
    if after.low and not before.low and live.battery:
        volts, share = live.battery.volts or 0.0, live.battery.share
        charge = -1.0 if share is None else round(100.0 * share)
        events.append(Event("battery_low", time, volts=round(volts, 2), battery=charge))
    if after.full and not before.full:
        events.append(Event("recording_full", time))
    return after, events


def _is_full(live: Live) -> bool:
    """Return whether the card is full of recordings that no station has fetched yet."""
    recording = live.recording
    return recording.station and recording.state != "ok" and recording.free_mb == 0


def state_of(live: Live, memory: Memory, now_s: float) -> dict[str, Any]:
    """Return the state for the broker; None is unknown."""
    battery, recording = live.battery, live.recording
    if battery is not None and (battery.state != "ok" or battery.age_s is None):
        battery = None
    share = battery.share if battery else None
    return {
        "time": utc_text(now_s),
        "driver": live.driver,
        "reason": live.reason,
        "stop": None if live.stop == HANDOVER else live.stop,
        "last_stop": memory.last_stop,
        "last_stop_time": utc_text(memory.last_stop_s) if memory.last_stop else None,
        "battery": None if share is None else round(100.0 * share),
        "volts": round(battery.volts, 2) if battery and battery.volts is not None else None,
        "distance": {
            sensor.name: round(sensor.range_m, 2)
            if sensor.range_m is not None
            and sensor.state == "ok"
            and (sensor.age_s is None or sensor.age_s <= OLD_S)
            else None
            for sensor in live.ranges
        },
        "link_ms": None if live.link_ms is None else round(live.link_ms, 1),
        "wifi_dbm": live.wifi_dbm,
        "recording": ("on" if recording.on else "off")
        if recording.state == "ok"
        else str(recording.state),
        "wheels": live.wheels,
        "camera": live.camera,
        "viewers": live.viewers,
    }
