"""Two faults at once: the remaining parts stop the car within a second."""

import random
from collections.abc import Iterator
from functools import partial

import pytest
from testkit.harness import STRIP, usual_s
from testkit.stops.double_faults import GAP_MOST_S, GRAVEST, PAIRS, Pair, off_after_s
from testkit.stops.ground import Ground, open_ground

from fpvcar.hil.stop_causes import TWO_FAULTS_S

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
DRAWN = 2


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
    pairs: list[Pair] = [*GRAVEST, *(others if soaking else dice.sample(others, DRAWN))]
    taken: dict[str, float] = {}
    for one, other in pairs:
        gap_s = dice.random() * GAP_MOST_S
        words = f"{one}, {other} after {gap_s:.2f} s"
        taken[words] = usual_s(partial(off_after_s, ground, (one, other), gap_s), TWO_FAULTS_S)
    for words, taken_s in sorted(taken.items(), key=lambda item: -item[1]):
        print(f"{taken_s:.3f} s: {words}")
    late = {words: taken_s for words, taken_s in taken.items() if taken_s > TWO_FAULTS_S}
    assert not late
