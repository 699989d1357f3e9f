"""Events of the hub and of the gate's owner become messages."""

from testkit.hub import House
from testkit.recorder.fed_car import Car

from fpvcar.drive import gate
from fpvcar.recordings import messages
from fpvcar.wire import up
from fpvcar.wire.settings import SetRecording


def test_hub_and_gate_events_reach_the_recorder() -> None:
    car = Car()
    house = House(recorder=car.feed, watcher=car.feed.step)
    ann = house.visitor("Ann")
    ann.drive(0.0)
    ann.drive(0.5, 0.25)
    ann.say(up.Drive(1, 0.0, 1.0, 0.0))
    eve = house.visitor("Eve", drive=False)
    eve.drive(1.0)
    ann.say(up.Report("webcodecs", 12.5, 4.25, 29.9, 3))
    wishes = [one for one in car.said(messages.WISH) if isinstance(one, messages.WishIn)]
    assert [(one.name, one.verdict) for one in wishes] == [
        ("Ann", "fresh"),
        ("Ann", "fresh"),
        ("Ann", "old"),
        ("Eve", "not at the wheel"),
    ]
    assert (wishes[1].throttle, wishes[1].steer) == (0.5, 0.25)
    assert car.said(messages.DRIVER) == [messages.Turn("Ann", "Ann took the wheel")]
    assert car.said(messages.LATENCY) == [
        messages.Latency("Ann", True, "webcodecs", 12.5, 4.25, 29.9, 3)
    ]
    ann.say(up.Release())
    assert car.said(messages.DRIVER)[-1] == messages.Turn(None, "Ann released the wheel")
    for one in car.said(messages.STEP):
        assert isinstance(one, messages.Step)
        again = gate.decide(
            one.wished(), one.latches, one.world(), one.now_ns / 1e9, house.profile.gate
        )
        assert again == gate.Decision(*one.decision())  # type: ignore[arg-type]


def test_drivers_mark_and_keep_but_grown_ups_switch_recording() -> None:
    car = Car()
    house = House(recorder=car.feed)
    ann = house.visitor("Ann")
    assert ann.state.recording is not None and ann.state.recording.on
    eve = house.visitor("Eve", drive=False)
    for message in (SetRecording(False), up.Keep(), up.Mark("x")):
        eve.say(message)
    assert car.feed.status().on and len(car.said(messages.EVENT)) == 1, "she sat down"
    ann.say(SetRecording(False))
    assert car.feed.status().on, "a driver's page without the grown-up code"
    assert ann.errors()[-1].what == "only a grown-up turns recording on or off"
    mum = house.visitor("Mum", code="grownups")
    mum.say(SetRecording(False))
    assert not car.feed.status().on
    mum.say(SetRecording(True))
    ann.say(up.Mark("here"))
    ann.say(up.Keep())
    names = [one.name for one in car.said(messages.EVENT) if isinstance(one, messages.Event)]
    assert names.count(messages.RECORDER) == 3 and len(car.said(messages.MARK)) == 1
