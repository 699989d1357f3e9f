"""Fixtures: a replicator with an office in memory."""

from pathlib import Path

import pytest
from testkit.base_station.office import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)
