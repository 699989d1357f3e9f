"""SQL of "Find moments" on the page: a search by conditions, and figures of each week. Pure.

    conditions -> hits: rows of samples, or stops -> slots of 2 s -> moments

The conditions are a closed set: numbers, known causes, a month, and a name, which is quoted.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from fpvstation.query.engine import quoted


class Limit(NamedTuple):
    """Limit of a column of samples: `sign` is "<" or ">", `most` the largest value accepted."""

    column: str
    sign: str
    most: float


LIMITS = {
    "front_below_m": Limit("front_m", "<", 10.0),
    "throttle_above_share": Limit("throttle_share", ">", 1.0),
    "battery_below_v": Limit("battery_v", "<", 60.0),
    "picture_above_ms": Limit("picture_ms", ">", 60_000.0),
}
ANY_STOP = "any"
STOPS = (
    *(ANY_STOP, "handover", "silence", "blind", "estop", "estop_grown_up"),
    *("wheels_lost", "wheels_stopped", "pins", "direction", "resistor", "settings_lost"),
)
"""Causes of stops, as in the gate of the car, and any."""
MONTH = re.compile("[0-9]{4}-(0[1-9]|1[0-2])")
APART_US = 2_000_000
"""Hits of a session at most this far apart are one moment. Slots of this length are merged first:
windows over all hits would need much memory."""
BEFORE_S = 1
"""Limits beside a stop have to hold at some time within so many seconds before it."""


class Conditions(NamedTuple):
    """Conditions that hold together. `limits` are keyed as LIMITS; "" is no condition."""

    limits: Mapping[str, float]
    stop: str = ""
    driver: str = ""
    month: str = ""


def moments_sql(conditions: Conditions, most: int) -> str:
    """Return the query for the newest moments: session, cause, driver, begins, ends (us, UTC), then
    the worst value of each column with a limit. `most` rows and one more."""
    limits = [(LIMITS[name], value) for name, value in conditions.limits.items()]
    hit, cause = ("e", "e.cause") if conditions.stop else ("s", "NULL::VARCHAR")
    where = [f"s.{limit.column} {limit.sign} {value!r}" for limit, value in limits]
    source = "samples s"
    if conditions.stop:
        where.append("e.kind = 'stop'")
        source = "events e"
        if limits:
            source += (
                " JOIN samples s ON s.session = e.session AND s.time "
                f"BETWEEN e.time - INTERVAL {BEFORE_S} SECOND AND e.time"
            )
    if conditions.stop not in ("", ANY_STOP):
        where.append(f"e.cause = {quoted(conditions.stop)}")
    if conditions.driver:
        where.append(f"{hit}.driver = {quoted(conditions.driver)}")
    if conditions.month:
        tables = {hit, "s"} if limits else {hit}
        where += [f"{table}.month = {quoted(conditions.month)}" for table in sorted(tables)]
    columns = "".join(f", s.{limit.column}" for limit, _ in limits)
    worst = "".join(
        f", {'min' if limit.sign == '<' else 'max'}({limit.column}) AS {limit.column}"
        for limit, _ in limits
    )
    merge = (
        "SELECT session, cause, arg_min(driver, begins) AS driver, min(begins) AS begins, "
        f"max(ends) AS ends{worst} FROM {{}} GROUP BY session, cause, part"
    )
    return f"""
        WITH hits AS (
            SELECT {hit}.session, {cause} AS cause, {hit}.driver, epoch_us({hit}.time) AS begins,
            epoch_us({hit}.time) AS ends, epoch_us({hit}.time) // {APART_US} AS part{columns}
            FROM {source} WHERE {" AND ".join(where)}),
        slots AS ({merge.format("hits")}),
        marked AS (
            SELECT *, coalesce(begins - lag(ends) OVER before > {APART_US}, true) AS is_new
            FROM slots WINDOW before AS (PARTITION BY session, cause ORDER BY begins)),
        numbered AS (
            SELECT *, sum(is_new::INTEGER) OVER before AS part
            FROM marked WINDOW before AS (PARTITION BY session, cause ORDER BY begins))
        {merge.format("numbered")} ORDER BY begins DESC, session, cause LIMIT {most + 1}
    """


DRIVEN_LEAST_H = 1 / 60
"""Weeks with less driving have no rate: one stop in some seconds would dwarf all others."""


def weeks_sql(driven_least_h: float = DRIVEN_LEAST_H) -> str:
    """Return the query for the figures of each week: stops per hour driven and voltage under load
    (the lowest 5 %) of each car, and percentiles of the picture's age. Quantiles are estimates of
    constant size."""
    return f"""
    WITH driven AS (
        SELECT car, date_trunc('week', time) AS week,
        count(*) FILTER (throttle_share <> 0) / 36000 AS hours,
        approx_quantile(battery_v, 0.05) FILTER (abs(throttle_share) > 0.5) AS battery
        FROM samples GROUP BY ALL),
    stopped AS (
        SELECT car, date_trunc('week', time) AS week, count(*) AS stops
        FROM events WHERE kind = 'stop' GROUP BY ALL),
    late AS (
        SELECT date_trunc('week', time) AS week,
        approx_quantile(picture_ms, [0.5, 0.95, 0.99]) AS ms
        FROM samples WHERE picture_ms IS NOT NULL GROUP BY ALL)
    SELECT 'stops' AS plot, car AS line, epoch_ms(week) AS week_ms,
        coalesce(stops, 0) / hours AS value
        FROM driven LEFT JOIN stopped USING (car, week) WHERE hours > {driven_least_h!r}
    UNION ALL SELECT 'battery', car, epoch_ms(week), battery FROM driven WHERE battery IS NOT NULL
    UNION ALL SELECT 'latency', unnest(['50 %', '95 %', '99 %']), epoch_ms(week), unnest(ms)
        FROM late
    ORDER BY plot, line, week_ms
    """
