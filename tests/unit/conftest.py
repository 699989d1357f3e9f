"""Fixtures of all units."""

import pytest
from testkit.car import Car


@pytest.fixture
def car() -> Car:
    return Car()
