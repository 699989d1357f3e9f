"""Lights, marks, name, and lights that follow the car."""

import asyncio

import pytest
from testkit.hub import House, Visitor

from fpvcar.drive.saved import SavedName
from fpvcar.http.responses import quoted
from fpvcar.runtime.texts import STARTING
from fpvcar.seat.vehicle import Channel
from fpvcar.video.camera import Camera
from fpvcar.video.stream import Stream
from fpvcar.wire import up
from fpvcar.wire.down import CarName, Welcome
from fpvcar.wire.settings import Lights


def test_head_lights_are_set_and_toggled(house: House) -> None:
    ann = house.visitor("Ann")
    ann.say(Lights())
    assert ann.state.settings.head_lights
    ann.say(Lights(head=False))
    assert not ann.state.settings.head_lights
    assert [on for lamp, on in house.lights.told if lamp == "head"] == [True, False]
    ann.say(Lights(head=True))
    ann.say(Lights())
    assert not ann.state.settings.head_lights


def test_page_tells_which_camera_is_large(house: House) -> None:
    rear = Camera(["true"], True)
    house.vehicle.cameras.add("rear", Channel(rear, Stream(rear), asyncio.Event()))
    large = house.hub.sessions.large
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    ann.drive(0.0)
    assert large() == "" and ann.state.camera == "ok"
    bob.say(up.View("rear"))
    assert large() == "", "Bob watches"
    ann.say(up.View("rear", shown=False))
    assert ann.session.preferred == "rear", "its link belongs to this picture"
    assert large() == "" and ann.state.camera == "ok", "she still sees the first one"
    ann.say(up.View("rear"))
    assert large() == "rear"
    shown = ann.state
    assert shown.camera == STARTING
    ann.say(up.View("side"))
    assert [(one.what, one.value, one.limit) for one in ann.errors()] == [
        ("unknown camera", "side", "one of rear")
    ]
    assert large() == "rear"
    ann.say(up.View(""))
    assert large() == "" and ann.state.camera == "ok"


def test_car_with_one_camera_refuses_others() -> None:
    ann = House().visitor("Ann")
    ann.say(up.View(""))
    assert ann.errors() == []
    ann.say(up.View("rear"))
    assert ann.errors()[0].limit == "no name: this car has one camera"


def test_rear_lights_follow_reversing(house: House) -> None:
    ann = house.visitor("Ann")
    ann.drive_off(-1.0)
    assert house.lights.told[-1] == ("reversing", True)
    ann.drive(0.0)
    assert house.lights.told[-1] == ("reversing", False)
    ann.drive(-1.0)
    house.now_s += 0.3
    house.control.step()
    house.hub.broadcast()
    assert house.lights.told[-1] == ("reversing", False), "after silence"


def test_indicators_are_told_steering_and_stops(house: House) -> None:
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


def test_stuck_mark_button_is_limited_to_ten_marks(house: House) -> None:
    ann = house.visitor("Ann")
    for _ in range(1000):
        ann.say(up.Mark("again"))
    assert len(house.recorder.marks) == 10
    assert [one.what for one in ann.errors()] == ["too many pushes"]
    house.now_s += 5.0
    ann.say(up.Mark("later"))
    assert len(house.recorder.marks) == 11


def test_first_driver_names_the_car_and_all_pages_show_it(house: House) -> None:
    ann, bo = house.visitor("Ann"), house.visitor("Bo", drive=False)
    assert [welcome(one).named for one in (ann, bo)] == [False, False]
    ann.say(up.NameCar("  Blue \t Comet "))
    assert (
        CarName("Blue Comet") in ann.session._outbox and CarName("Blue Comet") in bo.session._outbox
    )
    assert house.saved_names == [SavedName("Blue Comet", "Plague")]
    late = welcome(house.visitor("Cy"))
    assert (late.car, late.named) == ("Blue Comet", True)


@pytest.mark.parametrize("name", ["", " \n", "n" * 25, "a\x1b[2J", "\u202egnirts", "a\u200bb"])
def test_car_name_refusal_has_value_limit_and_next_step(house: House, name: str) -> None:
    ann = house.visitor("Ann")
    ann.say(up.NameCar(name))
    [error] = ann.errors()
    assert error.code == "car_name" and error.value == quoted(name)
    assert error.limit == "1 to 24 visible characters" and error.next == "choose another name"
    assert house.saved_names == [] and not house.name.chosen


def welcome(visitor: Visitor) -> Welcome:
    return next(one for one in visitor.session._outbox if isinstance(one, Welcome))
