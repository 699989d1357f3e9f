"""Events of the hub and of the gate's owner become messages; strangers cannot fill the card."""

from testkit.hub import House
from testkit.recorder.fed_car import Car

from fpvcar.drive import gate
from fpvcar.drive.control import GateRun
from fpvcar.recordings import messages
from fpvcar.wire import up
from fpvcar.wire.settings import SetRecording

CROWD, PER_S = 20, 250
MOST_BYTES_S = 10_000
REPORT = up.Report("webcodecs", 12.5, 4.25, 29.9, 3)


def test_hub_and_gate_events_reach_the_recorder() -> None:
    car = Car()
    house = House(recorder=car.feed, watcher=car.feed.step)
    ann = house.visitor("Ann")
    ann.drive(0.0)
    ann.drive(0.5, 0.25)
    ann.say(up.Drive(1, 0.0, 1.0, 0.0))
    eve = house.visitor("Eve", drive=False)
    eve.drive(1.0)
    ann.say(REPORT)
    wishes = car.said(messages.WISH)
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
        again = gate.decide(
            one.wished(), one.latches, one.world(), one.now_ns / 1e9, house.profile.gate
        )
        assert again == gate.Decision(*one.decision())


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
    names = [one.name for one in car.said(messages.EVENT)]
    assert names.count(messages.RECORDER) == 3 and len(car.said(messages.MARK)) == 1


def recorded_bytes(car: Car) -> int:
    """Return the size of all recordings so far."""
    car.rig.thread.turn()
    return sum(len(one.data) for one in car.rig.messages())


def test_flood_from_viewers_adds_little_to_the_recording() -> None:
    """Second with all messages that the sockets accept: wishes, reports, and STOP pushed."""
    car = Car()
    runs: list[GateRun] = []
    house = House(recorder=car.feed, watcher=runs.append)
    ann = house.visitor("Ann")
    ann.drive(0.0)
    ann.drive(0.5)
    crowd = [house.visitor(f"Eve {n}", drive=False) for n in range(CROWD)]
    before = recorded_bytes(car)
    runs.clear()
    for _ in range(PER_S):
        house.now_s += 1.0 / PER_S
        for eve in crowd:
            eve.drive(1.0)
            eve.say(REPORT)
            eve.say(up.Estop())
    assert len(runs) == 1, "each push is a run of the gate, and is recorded"
    assert 0 < recorded_bytes(car) - before < MOST_BYTES_S
    said = [one.verdict for one in car.said(messages.WISH)]
    assert "not at the wheel" in said, "that somebody tried is known all the same"


def test_driver_is_recorded_during_a_flood() -> None:
    car = Car()
    house = House(recorder=car.feed)
    ann = house.visitor("Ann")
    eve = house.visitor("Eve", drive=False)
    for _ in range(PER_S):
        eve.drive(1.0)
    for _ in range(100):
        ann.drive(0.0)
        ann.say(REPORT)
    said = car.said(messages.WISH)
    wishes = [one for one in said]
    assert sum(one.name == "Ann" for one in wishes) == 100
    assert len(car.said(messages.LATENCY)) == 100


def test_harder_stop_replaces_a_softer_one() -> None:
    house = House()
    ann = house.visitor("Ann")
    mum = house.visitor("Mum", code="grownups")
    ann.say(up.Estop())
    ann.say(up.Estop())
    mum.say(up.Estop())
    ann.say(up.Resume())
    stop = house.hub.stop()
    assert stop is not None and (stop.cause, stop.by) == ("estop_grown_up", "Mum")
