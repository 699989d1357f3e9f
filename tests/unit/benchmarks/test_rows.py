"""Table of the benchmark: statistics, aims, format of a line. And its clock."""

import pytest
from benchmarks.browser import glass
from benchmarks.load import Load
from benchmarks.rows import HEAD, RATIO, Aim, Note, Row, line, ratio, row


def of(values: list[float], aim: Aim | None = None, unit: str = "ms") -> Row:
    return row("video", "path", unit, values, aim)


def test_statistics_are_samples_that_were_measured() -> None:
    one = of([float(number) for number in range(1, 101)])
    assert (one.median, one.p95, one.p99, one.worst) == (50.5, 96.0, 100.0, 100.0)
    assert (of([7.0]).p95, of([7.0]).worst) == (7.0, 7.0)


@pytest.mark.parametrize(
    ("aim", "met"),
    [
        (Aim(), None),
        (Aim(median=3), True),
        (Aim(median=2.9), False),
        (Aim(median=3, worst=8.9), False),
        (Aim(p95=9, p99=9, worst=9), True),
        (Aim(least=3), True),
        (Aim(least=3.1), False),
    ],
)
def test_aim_is_met_or_missed(aim: Aim, met: bool | None) -> None:
    assert of([1.0, 2.0, 3.0, 4.0, 9.0], aim).met is met


def test_row_without_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        of([])


def test_values_are_aligned_with_their_heads() -> None:
    said = line(of([1.0, 2.0, 3.25, 4.0], Aim(median=2, p99=24)))
    for name, value in (("median", "2.6"), ("p95", "4.0"), ("worst", "4.0")):
        end = HEAD.index(name) + len(name)
        assert said[:end].endswith(f" {value}"), name
    assert "ms" in said and "MISSED (median <= 2, p99 <= 24)" in said
    assert line(of([1.0, 2.0], Aim(median=2))).endswith("met    (median <= 2)")
    assert line(of([1.0, 2.0])).endswith(" 2")


def test_single_sample_has_no_percentiles() -> None:
    said = line(of([42.0], Aim(worst=150)))
    assert said.count("42.0") == 1
    assert said[: HEAD.index("median") + 6].endswith("42.0")
    assert said[HEAD.index("met" if "met" in HEAD else "(aim)") - 7 :].startswith("met")


def test_ratio_is_of_medians_and_has_two_digits() -> None:
    one = ratio("video", "ours / theirs", of([12.0]), of([30.0]), Aim(median=0.45))
    assert one.unit == RATIO and one.median == pytest.approx(0.4) and one.met
    assert line(one).split()[4:8] == ["0.40", "x", "1", "met"]


def test_left_out_benchmark_has_a_line() -> None:
    assert line(Note("firefox", "not installed")) == "firefox  left out: not installed"


# --- the clock on the glass -----------------------------------------------------------


def test_age_survives_the_clock_wraparound() -> None:
    assert glass.age_ms(1000.0, 501_012.0, 500_000.0) == 12.0
    shown = 2.0**32 + 5.0
    assert glass.age_ms(2**32 - 10, shown, 0.0) == 15.0
    assert glass.age_ms(1000.0, 999.0, 0.0) == -1.0


def test_painted_leaves_the_first_out() -> None:
    samples = [[100.0 * n, 100.0 * n + 12 + n % 2] for n in range(10)]
    seen = glass.painted(samples, 0.0)
    assert seen.ages_ms == (13.0, 12.0, 13.0, 12.0, 13.0)
    assert seen.gaps_ms == (99.0, 101.0, 99.0, 101.0)


def test_presented_goes_by_the_media_time() -> None:
    """A strip that is one picture ahead of the reported one changes no age."""
    samples = [[7000 + 33.0 * n, 7028 + 33.0 * n, 0.033 * n] for n in range(20)]
    samples[12][0] += 33.0
    seen = glass.presented(samples, 0.0)
    assert seen.ages_ms == pytest.approx([28.0] * 15)
    assert seen.gaps_ms == pytest.approx([33.0] * 14)


def test_presented_follows_a_new_source() -> None:
    """Media time restarts at 0 after a reset of the element; the ages continue."""
    samples = [
        [7000 + 33.0 * n, 7028 + 33.0 * n, 0.033 * (n if n < 20 else n - 20)] for n in range(40)
    ]
    assert glass.presented(samples, 0.0).ages_ms == pytest.approx([28.0] * 35)


@pytest.mark.parametrize(
    ("share", "late", "served"), [(0.99, 5, True), (0.98, 0, False), (1.0, 6, False)]
)
def test_crowd_is_served_if_enough_pictures_come_in_time(
    share: float, late: int, served: bool
) -> None:
    load = Load(1, ages_ms=[33.0] * (100 - late) + [33.1] * late, share=share)
    assert load.in_time == pytest.approx(1 - late / 100)
    assert load.served is served
    assert not Load(1, share=0.0).served, "nothing came"
