"""Fixtures of all units."""

import pytest
from testkit.car import Car
from testkit.hub import House


@pytest.fixture
def car() -> Car:
    return Car()


@pytest.fixture
def house() -> House:
    return House()
