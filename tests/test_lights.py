"""Lights: which are on; and the board's thread on a pigpiod that comes and goes."""

from fpvcar import lights
from fpvcar.config import Lights

CAR = Lights(head=(5, 6), rear=(13,))


def test_head_and_rear() -> None:
    assert lights.levels(CAR, head=True, reversing=False) == {5: 1, 6: 1, 13: 0}
    assert lights.levels(CAR, head=False, reversing=True) == {5: 0, 6: 0, 13: 1}


def test_car_without_lights() -> None:
    assert lights.levels(Lights(), head=True, reversing=True) == {}
