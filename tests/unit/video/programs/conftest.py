"""Cameras that a test starts; their processes end with it."""

from collections.abc import Iterator

import pytest
from testkit.cameras.camera import Camera


@pytest.fixture
def cameras() -> Iterator[list[Camera]]:
    made: list[Camera] = []
    yield made
    for each in made:
        each.close()
