"""Events of a car: each once, and none lost between two answers, restarts or stations."""

import random
from collections import Counter

import msgspec
from msgspec.structs import replace

from fpvcar.mqtt.events import Event, Memory, observe, state_of
from fpvcar.runtime.texts import Text
from fpvcar.wire.station import Live
from fpvcar.wire.telemetry import Battery, Range, Recording
from tests.unit.mqtt.test_topics import LIVE

CARD_FULL, SILENT = Text("card_full", "the card is full"), Text("silent", "silent")
FULL = Recording(True, CARD_FULL, 3.0, free_mb=0, station=True)


def events_of(*answers: Live, memory: Memory | None = None) -> list[Event]:
    """Return the events of answers that come a second apart."""
    events = list[Event]()
    for number, live in enumerate(answers):
        memory, new = observe(memory, live, 1000.0 + number)
        events += new
    return events


def test_first_answer_reports_no_old_stop() -> None:
    assert events_of(replace(LIVE, stops={"silence": 7})) == []


def test_drive_begins_and_ends_with_its_driver() -> None:
    ann, bob = replace(LIVE, driver="Ann"), replace(LIVE, driver="Bob")
    events = events_of(LIVE, ann, ann, ann, bob, LIVE)
    assert [(one.event_type, one.driver, one.seconds) for one in events] == [
        ("drive_began", "Ann", 0.0),
        ("drive_ended", "Ann", 3.0),
        ("drive_began", "Bob", 0.0),
        ("drive_ended", "Bob", 1.0),
    ]
    assert events[0].time == "1970-01-01T00:16:41.000+00:00"


def test_stop_that_ended_between_two_answers_is_counted() -> None:
    held = replace(LIVE, stops={"estop": 1}, stop="estop", stopped_by="Mum")
    (first,) = events_of(LIVE, held)
    assert (first.event_type, first.cause, first.by) == ("stop", "estop", "Mum")
    (second,) = events_of(held, replace(LIVE, stops={"estop": 1, "silence": 3}))
    assert (second.cause, second.by, second.count) == ("silence", "", 3)


def test_restarted_car_counts_from_zero() -> None:
    events = events_of(
        LIVE, replace(LIVE, stops={"blind": 4}), replace(LIVE, run="2", stops={"blind": 5})
    )
    assert [one.count for one in events] == [4, 5]


def test_counted_stops_are_all_reported_whatever_is_missed() -> None:
    dice, made, memory = random.Random(5), Counter[str](), None
    run, counts, reported = 0, Counter[str](), Counter[str]()
    for _ in range(2000):
        if dice.random() < 0.02 and memory and dict(counts) == memory.stops:
            run, counts = run + 1, Counter()
        for cause in dice.choices(("silence", "estop", "blind"), k=dice.randrange(3)):
            counts[cause] += 1
            made[cause] += memory is not None
        if dice.random() < 0.4:
            live = replace(LIVE, run=str(run), stops=dict(counts))
            memory, events = observe(memory, live, 0.0)
            for event in events:
                reported[event.cause] += event.count
    memory, events = observe(memory, replace(LIVE, run=str(run), stops=dict(counts)), 0.0)
    for event in events:
        reported[event.cause] += event.count
    assert reported == made and sum(made.values()) > 500


def test_low_battery_and_full_card_are_reported_once() -> None:
    low = replace(LIVE, battery=Battery(6.312, 0.5, 0.08, True, 0.1))
    events = events_of(LIVE, low, low, LIVE, low, replace(low, recording=FULL))
    kinds = [one.event_type for one in events]
    assert kinds == ["battery_low", "battery_low", "recording_full"]
    assert (events[0].volts, events[0].battery) == (6.31, 8.0)


def test_faults_keep_their_text_on_the_wire() -> None:
    sent = msgspec.json.encode(replace(LIVE, recording=FULL))
    live = msgspec.json.decode(sent, type=Live)
    assert state_of(live, Memory(), 0.0)["recording"] == "the card is full"


def test_ring_without_a_station_is_never_full() -> None:
    assert events_of(LIVE, replace(LIVE, recording=replace(FULL, station=False))) == []


def test_restarted_station_continues_with_its_memory() -> None:
    memory, _ = observe(None, replace(LIVE, driver="Ann"), 1000.0)
    memory, events = observe(memory, replace(LIVE, stops={"estop": 1}), 1060.0)
    assert [one.event_type for one in events] == ["drive_ended", "stop"]
    assert (events[0].driver, events[0].seconds) == ("Ann", 60.0)
    assert memory.last_stop == "estop" and memory.last_stop_s == 1060.0


def test_state_has_no_old_reading() -> None:
    ranges = (
        Range("front", 0.0, 1.234, 0.1),
        Range("rear", 180.0, 0.5, 3.0),
        Range("left", 90.0, 0.5, 0.1, SILENT),
        Range("right", -90.0, None, 0.1),
    )
    state = state_of(
        replace(LIVE, ranges=ranges, battery=Battery(7.4, 0.5, 0.6, False, 9.0, SILENT)),
        Memory(),
        0.0,
    )
    assert state["distance"] == {"front": 1.23, "rear": None, "left": None, "right": None}
    assert state["battery"] is state["volts"] is None


def test_new_driver_is_no_stop() -> None:
    assert state_of(replace(LIVE, stop="handover"), Memory(), 0.0)["stop"] is None
    assert state_of(replace(LIVE, stop="estop"), Memory(), 0.0)["stop"] == "estop"
