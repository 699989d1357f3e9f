"""Conversion of a run of the gate to recorded messages, in the recorder's thread. Pure."""

import math
from collections.abc import Sequence

from fpvcar.drive.control import GateRun
from fpvcar.recordings import messages
from fpvcar.wire.telemetry import Range


def step_of(stepped: GateRun) -> messages.Step:
    """Convert a gate run to its recorded message."""
    decision, world = stepped.decision, stepped.world
    return messages.Step(
        now_ns=stepped.now_ns,
        limit=world.limit,
        latches=stepped.latches,
        slew=stepped.slew,
        throttle=decision.throttle,
        steer=decision.steer,
        reason=decision.reason,
        after=decision.latches,
        duties=stepped.duties,
        wish=messages.wish_of(stepped.wish),
        picture_age_s=world.picture_age_s,
        fault=world.fault,
        volts=stepped.volts,
        free=world.free,
        ranges=tuple(map(_recorded, stepped.ranges)),
        guard_mode=stepped.guard_mode,
    )


def _recorded(sensor: Range) -> messages.Range:
    state = str(sensor.state)
    return messages.Range(sensor.name, sensor.bearing_deg, sensor.range_m, sensor.age_s, state)


def plot_of(stepped: GateRun, ranges: Sequence[Range], offset_ns: int) -> messages.Plot:
    """Return the figures of a gate run and of the sensors."""
    nan, world, decision = math.nan, stepped.world, stepped.decision
    figures = {
        "throttle": decision.throttle,
        "steer": decision.steer,
        **{f"duty_{number}": duty for number, duty in enumerate(stepped.duties, 1)},
        "picture_age_s": nan if world.picture_age_s is None else world.picture_age_s,
        "battery_v": nan if stepped.volts is None else stepped.volts,
        **{
            f"{sensor.name}_m": nan if sensor.range_m is None else sensor.range_m
            for sensor in ranges
        },
    }
    return messages.Plot(stepped.now_ns + offset_ns, tuple(figures), tuple(figures.values()))
