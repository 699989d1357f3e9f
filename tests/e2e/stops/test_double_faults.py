"""Two faults at once: the remaining parts stop the car within a second."""

import random
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from testkit.harness import STRIP, usual_s
from testkit.stops import esc_causes
from testkit.stops.double_faults import GAP_MOST_S, GRAVEST, PAIRS, PARTS, Pair, off_after_s, pairs
from testkit.stops.ground import Ground, open_ground

from fpvcar.hil.stop_causes import TWO_FAULTS_S

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
DRAWN = 2
ESC_DRAWN, ESC_SOAKED = 2, 25
"""Pairs for each of the four cars with an ESC; `make soak` runs a hundred."""
GUARDED = ("run", "wheels", "guardian", "camera")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The bench for all pairs."""
    with open_ground(tmp_path_factory.mktemp("pairs"), STRIP) as made:
        yield made
        print(made.bench.log())


@pytest.mark.soak
def test_double_faults_stop_the_car_within_a_second(ground: Ground, soaking: bool) -> None:
    """`make soak` runs all pairs; otherwise the gravest and a few random ones are run."""
    dice = random.Random(1)
    others = [pair for pair in PAIRS if pair not in GRAVEST]
    drawn: list[Pair] = [*GRAVEST, *(others if soaking else dice.sample(others, DRAWN))]
    _measure(ground, drawn, TWO_FAULTS_S, dice)


@pytest.mark.soak
@pytest.mark.parametrize("name", esc_causes.CARS)
def test_double_faults_stop_a_car_with_an_esc(
    name: str, soaking: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last resort of two faults is silence, so the ESC's own time comes on top."""
    lines, _ = esc_causes.CARS[name]
    dice, parts = random.Random(name), PARTS if name == "pigpiod" else GUARDED
    drawn = dice.sample(pairs(parts), ESC_SOAKED if soaking else ESC_DRAWN)
    home, kind = tmp_path_factory.mktemp("esc"), esc_causes.EscBench
    with open_ground(home, STRIP, *esc_causes.options(lines), kind=kind) as made:
        try:
            _measure(made, drawn, TWO_FAULTS_S + esc_causes.LOSS_S, dice)
        finally:
            print(made.bench.log())


def _measure(ground: Ground, drawn: Sequence[Pair], limit_s: float, dice: random.Random) -> None:
    """Bring each pair at random distances; fail if a stop is late."""
    taken: dict[str, float] = {}
    for one, other in drawn:
        gap_s = dice.random() * GAP_MOST_S
        words = f"{one}, {other} after {gap_s:.2f} s"
        taken[words] = usual_s(partial(off_after_s, ground, (one, other), gap_s), limit_s)
    for words, taken_s in sorted(taken.items(), key=lambda item: -item[1]):
        print(f"{taken_s:.3f} s: {words}")
    late = {words: taken_s for words, taken_s in taken.items() if taken_s > limit_s}
    assert not late
