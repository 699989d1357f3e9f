"""Seeded schedules of cuts, stalls, flips, kills, power cuts and full disks: nothing is
lost, nothing is twice in a store, nothing is wrong, and all of it comes home."""

import pytest

from fpvcar.recordings import sums
from tests.rigs.station_links import PIECE
from tests.rigs.station_world import World

SEEDS, SEEDS_SOAK, BATCHES = 50, 1000, 10


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(BATCHES))
def test_nothing_is_lost_whatever_fails(
    batch: int, soaking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "PIECE", PIECE)
    for seed in range(batch, SEEDS_SOAK if soaking else SEEDS, BATCHES):
        try:
            World(seed).run()
        except AssertionError as fault:
            raise AssertionError(f"seed {seed}: {fault}") from fault
