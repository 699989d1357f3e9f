"""Comparison with the tuned rival: order of the rounds, series and ratios."""

from collections.abc import Sequence

import pytest
from benchmarks.__main__ import parts_of
from benchmarks.baselines.tuned import (
    DOUBLED,
    FRAMED,
    GAP,
    GLASS,
    PION,
    ROUNDS,
    Ratio,
    built,
    compare,
    too_old,
)
from benchmarks.network.links import ShownPicture
from benchmarks.rows import RATIO, Row


def pictures(age_ms: float, gap_ms: float) -> Sequence[ShownPicture]:
    return [ShownPicture(number * gap_ms, age_ms) for number in range(20)]


def compared(ratios: Sequence[Ratio]) -> tuple[list[str], dict[str, Row]]:
    """Return the order of the measurements, and the rows by name. Each round of ours has half the
    age and a quarter of the gap of the rival's, and all rounds differ."""
    order: list[str] = []

    def measure(label: str, age_ms: float, gap_ms: float) -> Sequence[ShownPicture]:
        order.append(label)
        number = order.count(label)
        return pictures(number * age_ms, number * gap_ms)

    contenders = {
        FRAMED: lambda: measure(FRAMED, 10.0, 25.0),
        PION: lambda: measure(PION, 15.0, 50.0),
        DOUBLED: lambda: measure(DOUBLED, 20.0, 100.0),
    }
    rows = list(compare("links", "10% lost", contenders, ratios))
    return order, {row.name: row for row in rows}


def test_contenders_take_turns_in_alternating_order() -> None:
    order, _ = compared([Ratio(FRAMED, PION, GLASS, "median", 0.95)])
    assert order[:6] == [FRAMED, PION, DOUBLED, DOUBLED, PION, FRAMED]
    assert len(order) == 3 * ROUNDS


def test_series_with_a_ratio_are_given_for_each_contender() -> None:
    _, rows = compared([Ratio(FRAMED, DOUBLED, GAP, "worst", 0.5)])
    assert list(rows)[:3] == [
        f"framed camera, 10% lost: {GAP}",
        f"beside: tuned Pion, 10% lost: {GAP}",
        f"beside: tuned Pion, doubled, 10% lost: {GAP}",
    ]
    assert len(rows) == 4
    assert rows[f"framed camera, 10% lost: {GAP}"].values == (25.0, 50.0, 75.0)


@pytest.mark.parametrize(
    ("series", "statistic", "expected"), [(GLASS, "p99", 0.5), (GAP, "worst", 0.25)]
)
def test_ratio_is_of_the_same_round(series: str, statistic: str, expected: float) -> None:
    _, rows = compared([Ratio(FRAMED, DOUBLED, series, statistic, expected)])
    ratio = list(rows.values())[-1]
    assert ratio.name == f"framed camera / tuned Pion, doubled, 10% lost: {series}, {statistic}"
    assert ratio.unit == RATIO and ratio.values == (expected,) * ROUNDS
    assert ratio.met


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("", True),
        ("go version go1.19.8 linux/amd64", True),
        ("go version go1.24 linux/arm64", False),
        ("go version go2.0.1 linux/amd64", False),
    ],
)
def test_go_older_than_the_rivals_is_too_old(version: str, expected: bool) -> None:
    assert too_old(version) == expected


def test_missing_go_is_named_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RuntimeError, match=r"needs Go 1\.24 or newer, found: no go .* apt install"):
        with built():
            pass


def test_name_of_a_part_names_all_its_rows() -> None:
    assert parts_of("video, stop,video-rival") == [
        "video-rival",
        "video-stages",
        "video-paths",
        "video-shipped",
        "stop",
    ]
    assert parts_of("links-rival") == ["links-rival-loss", "links-rival-jitter"]
    with pytest.raises(ValueError, match=r"no part 'vid': the parts are video-rival, "):
        parts_of("vid")
