"""Moments: those of a plain scan of the same files, for each condition, and nothing else."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from testkit.base_station.queries import OTHER, SESSION, QueryWorld, sample_rows, stop_rows

from fpvcar.drive.gate import Cause
from fpvstation.query.engine import Engine
from fpvstation.query.moments import LIMITS, STOPS, Conditions, moments_sql, weeks_sql

SECOND_US = 1_000_000
SESSIONS = (SESSION, OTHER)


class Hit(NamedTuple):
    """Row that fulfils all conditions, with the values of the limited columns."""

    at_us: int
    driver: str | None
    values: tuple[float, ...]


def held(row: dict[str, Any], limits: dict[str, float]) -> bool:
    """Return whether all limits hold in a row of a plain scan."""
    for name, value in limits.items():
        column, sign, _ = LIMITS[name]
        found = row[column]
        if found is None or not (found < value if sign == "<" else found > value):
            return False
    return True


def hits_of(world: QueryWorld, session: str, wanted: Conditions) -> Iterator[tuple[Any, Hit]]:
    """Yield the cause and the hit of each row or stop that fulfils the conditions."""
    rows = list(sample_rows(world.files(session)))
    limits, columns = dict(wanted.limits), [LIMITS[name].column for name in wanted.limits]
    if not wanted.stop:
        for row in rows:
            if wanted.driver in ("", row["driver"]) and held(row, limits):
                values = tuple(row[column] for column in columns)
                yield None, Hit(row["time_us"], row["driver"], values)
        return
    for at_us, cause in stop_rows(world.files(session)):
        (driver,) = [row["driver"] for row in rows if row["time_us"] <= at_us][-1:] or [None]
        if wanted.stop not in ("any", cause) or wanted.driver not in ("", driver):
            continue
        before = [row for row in rows if at_us - SECOND_US <= row["time_us"] <= at_us]
        if not limits:
            yield cause, Hit(at_us, driver, ())
        for row in before:
            if limits and held(row, limits):
                yield cause, Hit(at_us, driver, tuple(row[column] for column in columns))


def scanned(world: QueryWorld, wanted: Conditions) -> list[tuple[object, ...]]:
    """Return the moments of a plain scan in the columns of moments_sql, oldest first."""
    found: list[tuple[object, ...]] = []
    worst = [min if LIMITS[name].sign == "<" else max for name in wanted.limits]
    for session in SESSIONS:
        if wanted.month not in ("", session.split("/")[1][:7]):
            continue
        by_cause: dict[Any, list[Hit]] = {}
        for cause, hit in hits_of(world, session, wanted):
            by_cause.setdefault(cause, []).append(hit)
        for cause, hits in by_cause.items():
            runs: list[list[Hit]] = []
            for hit in sorted(hits, key=lambda hit: hit.at_us):
                if not runs or hit.at_us - runs[-1][-1].at_us > 2 * SECOND_US:
                    runs.append([])
                runs[-1].append(hit)
            for run in runs:
                driver = next((hit.driver for hit in run if hit.driver), None)
                values = zip(worst, zip(*(hit.values for hit in run), strict=True), strict=False)
                figures = [pick(column) for pick, column in values]
                found.append((session, cause, driver, run[0].at_us, run[-1].at_us, *figures))
    return sorted(found, key=str)


def asked_for(world: QueryWorld, wanted: Conditions, most: int = 10_000) -> list[tuple[Any, ...]]:
    return list(Engine(world.state, world.store.id).query(moments_sql(wanted, most)).rows)


WANTED = [
    Conditions({"front_below_m": 1.3}),
    Conditions({"front_below_m": 1.7, "throttle_above_share": 0.02}),
    Conditions({"throttle_above_share": 0.0}),
    Conditions({"battery_below_v": 7.2}),
    Conditions({"picture_above_ms": 12.0}),
    Conditions({"front_below_m": 1.9, "throttle_above_share": 0.01}, driver="Bob"),
    Conditions({"front_below_m": 1.9}, month="2025-12"),
    Conditions({}, driver="Ann", month="2025-11"),
    Conditions({}, month="1999-01"),
    *(Conditions({}, stop=stop) for stop in STOPS),
    Conditions({"throttle_above_share": 0.01}, stop="any"),
    Conditions({"front_below_m": 1.7}, stop="estop", driver="Ann", month="2025-11"),
]


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_moments_are_those_of_a_plain_scan(asked: QueryWorld, wanted: Conditions) -> None:
    expected = scanned(asked, wanted)
    found = asked_for(asked, wanted)
    assert sorted(found, key=str) == expected
    assert [row[3] for row in found] == sorted((row[3] for row in found), reverse=True)


def test_causes_are_those_of_the_gate() -> None:
    assert STOPS == ("any", *Cause)


def test_conditions_of_these_tests_have_moments(asked: QueryWorld) -> None:
    counts = [len(scanned(asked, wanted)) for wanted in WANTED]
    assert sum(count > 0 for count in counts) >= 12 and max(counts) > 5, counts


def test_gaps_split_moments_at_two_seconds(asked: QueryWorld) -> None:
    for number in range(1, 20):
        wanted = Conditions({"front_below_m": number / 10})
        assert sorted(asked_for(asked, wanted), key=str) == scanned(asked, wanted), wanted


def test_newest_moments_are_kept_and_one_more(asked: QueryWorld) -> None:
    wanted = Conditions({}, stop="any")
    whole = asked_for(asked, wanted)
    assert len(whole) > 3 and asked_for(asked, wanted, 2) == whole[:3]


@pytest.mark.parametrize("name", ["Ann' OR '1' = '1", "'; DROP VIEW samples; --", "O'Brien", "\\'"])
def test_name_with_quotes_is_only_a_name(asked: QueryWorld, name: str) -> None:
    assert asked_for(asked, Conditions({}, driver=name)) == []
    assert len(asked_for(asked, Conditions({"front_below_m": 9.0}))) > 0


def test_figures_of_weeks_are_those_of_a_plain_scan(asked: QueryWorld) -> None:
    expected: dict[tuple[str, str, int], float] = {}
    ages: dict[int, list[float]] = {}
    for session in SESSIONS:
        rows, car = list(sample_rows(asked.files(session))), session.partition("/")[0]
        day = datetime.fromtimestamp(rows[0]["time_us"] / 1e6, UTC).date()
        monday = day.toordinal() - day.weekday()
        week_ms = (monday - datetime(1970, 1, 1).toordinal()) * 86_400_000
        hours = sum(row["throttle_share"] != 0.0 for row in rows) / 36_000
        key = "stops", car, week_ms
        expected[key] = len(stop_rows(asked.files(session))) / hours
        ages.setdefault(week_ms, []).extend(
            row["picture_ms"] for row in rows if row["picture_ms"] is not None
        )
        volts = [row["battery_v"] for row in rows if abs(row["throttle_share"]) > 0.5]
        if known := sorted(value for value in volts if value is not None):
            expected["battery", car, week_ms] = known[len(known) // 20]
    for (week_ms, values), (name, share) in itertools.product(
        ages.items(), (("50 %", 0.5), ("95 %", 0.95), ("99 %", 0.99))
    ):
        expected["latency", name, week_ms] = sorted(values)[int(share * (len(values) - 1))]
    found = Engine(asked.state, asked.store.id).query(weeks_sql(0.0))
    assert found.columns == ["plot", "line", "week_ms", "value"]
    figures = {(plot, line, week_ms): value for plot, line, week_ms, value in found.rows}
    assert figures == pytest.approx(expected, rel=0.05)
    assert sum(key[0] == "stops" for key in figures) == 2
    rates = Engine(asked.state, asked.store.id).query(weeks_sql()).rows
    assert "stops" not in {row[0] for row in rates}, "these drives last some seconds"
