"""Table "Who stops the car" for the motors that `fpvcar doctor --move` turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.harness import usual_s
from testkit.pins.wheels import Chip
from testkit.stops import doctor_causes
from testkit.stops.doctor_causes import Move
from testkit.stops.stopping import Cause

from tests.e2e.stops.test_who_stops import rows

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
RUNS, SOAK_RUNS = 1, 10
SMOKE = ("doctor --move: terminal sends SIGINT", "doctor --move: motor process hangs")


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chip]:
    """A pin daemon without any `wheels`."""
    with Chip(tmp_path_factory.mktemp("chip")) as made:
        yield made


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(doctor_causes.CAUSES, SMOKE))
def test_doctor_move_stops_in_time(
    chip: Chip, cause: Cause[Move], soaking: bool, tmp_path: Path
) -> None:
    runs = SOAK_RUNS if soaking else RUNS
    taken_s = [
        usual_s(lambda: doctor_causes.run_one(chip, tmp_path, cause), cause.limit_s)
        for _ in range(runs)
    ]
    assert max(taken_s) <= cause.limit_s, taken_s
