"""Lights and marks: the rights to switch them, and lights that follow the car."""

from fpvcar.server.vehicle import NoRecorder
from fpvcar.wire import up
from tests.support.hub import House


def test_head_lights_are_set_and_toggled() -> None:
    house = House()
    ann = house.visitor("Ann")
    ann.say(up.Lights())
    assert ann.state.head_lights
    ann.say(up.Lights(head=False))
    assert not ann.state.head_lights
    assert [one for one in house.lights.told if one[0] == "head"] == [
        ("head", True),
        ("head", False),
    ]
    ann.say(up.Lights(head=True))
    ann.say(up.Lights())
    assert not ann.state.head_lights


def test_rear_lights_follow_reversing() -> None:
    house = House()
    ann = house.visitor("Ann")
    ann.drive(0.0)
    ann.drive(-1.0)
    assert house.lights.told[-1] == ("reversing", True)
    ann.drive(0.0)
    assert house.lights.told[-1] == ("reversing", False)
    ann.drive(-1.0)
    house.now_s += 0.3
    house.control.step()
    house.hub.broadcast()
    assert house.lights.told[-1] == ("reversing", False), "after silence"


def test_indicators_are_told_steering_and_stops() -> None:
    house = House()
    ann = house.visitor("Ann")
    house.hub.broadcast()
    assert not house.lights.stopped, "a handover is no stop"
    ann.drive(0.0)
    ann.drive(0.5, 0.75)
    assert house.lights.steer == 0.75 and not house.lights.stopped
    ann.say(up.Estop())
    house.hub.broadcast()
    assert house.lights.steer == 0.0 and house.lights.stopped
    ann.say(up.Resume())
    ann.drive(0.0)
    house.hub.broadcast()
    assert not house.lights.stopped


class Marks(NoRecorder):
    """Recorder that counts the marks."""

    def __init__(self) -> None:
        self.count = 0

    def mark(self, text: str, name: str) -> None:
        self.count += 1


def test_stuck_mark_button_is_limited_to_ten_marks() -> None:
    recorder = Marks()
    house = House(recorder=recorder)
    ann = house.visitor("Ann")
    for _ in range(1000):
        ann.say(up.Mark("again"))
    assert recorder.count == 10
    assert [one.what for one in ann.errors()] == ["too many pushes"]
    house.now_s += 5.0
    ann.say(up.Mark("later"))
    assert recorder.count == 11
