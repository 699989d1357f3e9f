"""Viewers without rights cannot fill the card, with any messages."""

from testkit.hub import House
from testkit.recorder.fed_car import Car

from fpvcar.drive.control import GateRun
from fpvcar.recordings import messages
from fpvcar.wire import up

CROWD, PER_S = 20, 250
MOST_BYTES_S = 10_000
REPORT = up.Report("webcodecs", 12.5, 4.25, 29.9, 3)


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
    said = [one.verdict for one in car.said(messages.WISH) if isinstance(one, messages.WishIn)]
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
    wishes = [one for one in said if isinstance(one, messages.WishIn)]
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
