"""Columns and rows of recordings as tables, one table per topic. Pure.

Every row begins with `utc` (to the nanosecond; ISO 8601 in CSV) and `monotonic_s` (the car's
monotonic clock, which programs cannot set). Column names contain the units. Shares are fractions of
1; positive values are forward and left.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from fpvcar.recordings import messages
from fpvcar.runtime.units import SECOND_NS
from fpvcar.video import h264

Cell = float | int | str | bool | None
Columns = dict[str, type]


class Utc(int):
    """Time in ns since 1970, UTC: ISO 8601 in CSV, a timestamp in Parquet."""


class Table(NamedTuple):
    """Table layout of a topic; `row` returns a value for each column."""

    columns: Columns
    row: Callable[[Any], tuple[Cell, ...]]


def _step_row(step: messages.Step) -> tuple[Cell, ...]:
    wish, hold = step.wish, step.after.hold
    duties = (*step.duties, None, None)
    return (
        wish.throttle if wish else None,
        wish.steer if wish else None,
        wish.received_s if wish else None,
        step.picture_age_s,
        None if step.fault is None else str(step.fault),
        step.volts,
        step.limit,
        step.guard_mode,
        step.free.ahead,
        step.free.back,
        step.throttle,
        step.steer,
        step.reason,
        None if step.after.arm is None else str(step.after.arm),
        str(hold.cause) if hold else None,
        hold.by if hold else None,
        duties[0],
        duties[1],
    )


_RANGE = Table(
    {"bearing_deg": float, "range_m": float, "state": str},
    lambda message: (message.bearing_deg, message.range_m, message.state),
)
_SERVO = Table({"angle_deg": float}, lambda message: (message.deg,))
_LOG = Table(
    {"level": int, "name": str, "text": str},
    lambda message: (message.level, message.name, message.text),
)
TABLES: dict[str, Table] = {
    messages.CAMERA: Table(
        {"key_frame": bool, "size_bytes": int},
        lambda message: (h264.is_key(message.unit), len(message.unit)),
    ),
    messages.BATTERY: Table(
        {
            "battery_v": float,
            "battery_a": float,
            "charge_share": float,
            "low": bool,
            "age_s": float,
            "state": str,
        },
        lambda message: (
            message.volts,
            message.amps,
            message.share,
            message.low,
            message.age_s,
            message.state,
        ),
    ),
    messages.WISH: Table(
        {
            "seq": int,
            "browser_ms": float,
            "throttle_share": float,
            "steer_share": float,
            "name": str,
            "verdict": str,
        },
        lambda message: (
            message.seq,
            message.t,
            message.throttle,
            message.steer,
            message.name,
            message.verdict,
        ),
    ),
    messages.STEP: Table(
        {
            "wish_throttle_share": float,
            "wish_steer_share": float,
            "wish_received_s": float,
            "picture_age_s": float,
            "fault": str,
            "battery_v": float,
            "limit_share": float,
            "guard": str,
            "free_ahead_share": float,
            "free_back_share": float,
            "throttle_share": float,
            "steer_share": float,
            "reason": str,
            "arm": str,
            "hold": str,
            "hold_by": str,
            "drive_duty_share": float,
            "steer_duty_share": float,
        },
        _step_row,
    ),
    messages.DRIVER: Table({"name": str, "why": str}, lambda message: (message.name, message.why)),
    messages.LIGHTS: Table(
        {"head": bool, "reversing": bool, "left": bool, "right": bool},
        lambda message: (message.head, message.reversing, message.left, message.right),
    ),
    messages.BUTTONS: Table(
        {"lit": str, "mode": str, "length": int, "done": int, "best": int},
        lambda message: (
            " ".join(message.lit),
            message.mode,
            message.length,
            message.done,
            message.best,
        ),
    ),
    messages.HEALTH: Table(
        {"camera": str, "wheels": str, "board": str, "viewers": int, "figures": str, "faults": str},
        lambda message: (
            message.camera,
            message.wheels,
            message.board,
            message.viewers,
            msgspec.json.encode(message.figures).decode(),
            "; ".join(message.faults),
        ),
    ),
    messages.LATENCY: Table(
        {
            "name": str,
            "drives": bool,
            "path": str,
            "picture_ms": float,
            "link_ms": float,
            "pictures_per_s": float,
            "dropped": int,
            "share_lost": float,
        },
        lambda message: (
            message.name,
            message.drives,
            message.path,
            message.picture_ms,
            message.link_ms,
            message.fps,
            message.dropped,
            message.lost,
        ),
    ),
    messages.EVENT: _LOG,
    messages.MARK: _LOG,
}
TIMES: Columns = {"utc": Utc, "monotonic_s": float}


def table_of(topic: str) -> Table | None:
    """Return the table of a topic; None for foreign topics and topics without rows."""
    if topic.startswith(messages.RANGE):
        return _RANGE
    return _SERVO if topic.startswith(messages.SERVO) else TABLES.get(topic)


def columns_of(table: Table) -> Columns:
    """Return all columns of a table, the two times first."""
    return {**TIMES, **table.columns}


def file_stem(topic: str) -> str:
    """Convert a topic to a file name: "/range/front" becomes range-front."""
    safe = (letter if letter.isalnum() or letter in "-_" else "-" for letter in topic)
    return "".join(safe).strip("-") or "topic"


def row_of(
    table: Table, message: messages.Message, publish_ns: int, utc_offset_ns: int | None
) -> tuple[Cell, ...]:
    """Return one row; `publish_ns` is the UTC time of the event.

    Without an offset, `monotonic_s` is None.
    """
    monotonic_s = None
    if utc_offset_ns is not None:
        monotonic_s = (publish_ns - utc_offset_ns) / SECOND_NS
    return (Utc(publish_ns), monotonic_s, *table.row(message))


def utc_text(time_ns: int) -> str:
    """Format a time like 2026-11-21T19:40:07.123456789Z."""
    seconds, nanos = divmod(time_ns, SECOND_NS)
    date = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{date}.{nanos:09d}Z"


def cell_text(cell: Cell) -> str:
    """Format a cell for CSV: empty for None, floats with full precision."""
    if cell is None:
        return ""
    if isinstance(cell, Utc):
        return utc_text(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell) if isinstance(cell, float) else str(cell)
