"""Noise and real changes in successive readings of one sensor."""

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar.devices.outlier_filter import LAST, NoiseFilter


def verdicts(readings: Iterable[float | None]) -> list[bool]:
    noise = NoiseFilter(0.1, 0.2)
    return [noise.add(reading) for reading in readings]


@given(some.floats(0.1, 4.0), some.floats(-0.1, 0.1), some.integers(3, 60))
def test_steady_motion_is_quiet(from_m: float, step_m: float, count: int) -> None:
    """Speed up to 3 m/s at 30 readings a second."""
    line = [max(0.01, from_m + number * step_m) for number in range(count)]
    assert not any(verdicts(line))


def test_chip_noise_is_quiet() -> None:
    dice = random.Random(1)
    for metres in (0.05, 0.4, 1.2):
        sigma_m = max(0.002, 0.07 * metres)  # DS11555, table 12: the worst indoors
        assert not any(verdicts(metres + dice.gauss(0.0, sigma_m) for _ in range(3000)))


def test_poles_that_are_passed_are_quiet() -> None:
    """Each pole is seen in two of twelve readings."""
    assert not any(verdicts(([0.4] * 2 + [3.0] * 10) * 20))


def test_target_flickering_at_end_of_reach_is_quiet() -> None:
    assert not any(verdicts([1.2, None] * 100))


@pytest.mark.parametrize("readings", [[0.3, 1.5], [0.3, 1.5, 0.4, 1.1, 0.2]])
def test_jumping_readings_are_noisy_within_ten(readings: list[float]) -> None:
    said = verdicts(readings * 20)
    assert not said[0] and all(said[LAST:])


def test_noise_all_over_is_noisy_nearly_always_and_ends() -> None:
    dice, noise = random.Random(2), NoiseFilter(0.1, 0.2)
    said = [noise.add(dice.uniform(0.1, 1.2)) for _ in range(1000)]
    assert sum(said[LAST:]) > 900
    calm = [noise.add(0.5) for _ in range(LAST + 2)]
    assert calm[0] and not calm[-1]


def test_noise_ends_after_readings_without_target() -> None:
    noise = NoiseFilter(0.1)
    assert [noise.add(one) for one in [0.1, 1.0] * LAST][-1]
    assert not [noise.add(None) for _ in range(LAST)][-1]


def test_jump_limit_is_a_share_with_a_minimum() -> None:
    def jumpy(low: float, high: float) -> bool:
        return verdicts([low, high] * LAST)[-1]

    assert jumpy(0.30, 0.41) and not jumpy(0.30, 0.39)
    assert jumpy(2.0, 2.6) and not jumpy(2.0, 2.4)
    assert not verdicts([math.pi] * 50)[-1]
