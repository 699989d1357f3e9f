"""Names of people, and requests for the wheel: from the asker to the driver and back."""

import logging

import msgspec
import pytest
from testkit.hub import House, Visitor

from fpvcar.seat.turns import ANSWER_S, ASKS_BURST, ASKS_PER_S, PAUSE_S, WheelRequests
from fpvcar.wire import down, up
from fpvcar.wire.errors import WireError

MANY = 10_000


def driving(house: House) -> tuple[Visitor, Visitor]:
    """Return Ann, who drives at full throttle, and Mia, who watches."""
    ann, mia = house.visitor("Ann"), house.visitor("Mia")
    ann.drive_off()
    assert house.duties[0] > 0.0
    return ann, mia


def asked(visitor: Visitor) -> down.Asking:
    """Return the request in the state of a page."""
    asking = visitor.state.asking
    assert asking is not None
    return asking


def phase(visitor: Visitor) -> str | None:
    """Return the phase of the request in the state of a page."""
    asking = visitor.state.asking
    return asking.phase if asking else None


def answered(driver: Visitor, give: bool) -> None:
    """Answer the request that the driver sees."""
    driver.say(up.Answer(asked(driver).id, give))


# --- names ---


def test_new_name_is_shown_everywhere_and_the_wheel_stays(house: House) -> None:
    ann, mum = house.visitor(""), house.visitor("Mum", code="grownups")
    ann.drive_off()
    assert mum.state.driver == "somebody"
    ann.say(up.Name("Blue Fox (phone)"))
    assert (ann.state.role, mum.state.driver) == ("driver", "Blue Fox (phone)")
    assert house.duties[0] > 0.0, "a name stopped the car"
    mum.say(up.Who())
    people = next(one for one in mum.session._outbox if isinstance(one, down.People))
    assert {one.name for one in people.people} == {"Blue Fox (phone)", "Mum"}
    ann.say(up.Name(""))
    assert mum.state.driver == "somebody"


def test_new_name_of_a_driver_is_recorded_and_logged(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    ann, mia = house.visitor(""), house.visitor("", client="client-mia")
    ann.say(up.Name("Blue Fox"))
    mia.say(up.Name("Red Owl"))
    assert [name for name, _ in house.recorder.turns] == ["somebody", "Blue Fox"], (
        "a watcher is no driver"
    )
    with caplog.at_level(logging.INFO, "fpvcar.seat"):
        mia.say(up.Ask())
    assert "Red Owl (10.0.0.1) asks Blue Fox for the wheel" in caplog.text


def test_device_keeps_the_new_name(house: House) -> None:
    ann = house.visitor("", drive=False, code="123456")
    device = house.hub.authorization.claim(ann.session.ticket)
    assert device is not None and device.name == "somebody"
    ann.say(up.Name("Blue Fox (phone)"))
    assert device.name == "Blue Fox (phone)"


@pytest.mark.parametrize(
    "name",
    [
        "n" * 33,
        "a\nfpvcar.seat: Mum took the wheel",
        "\x1b[2J",
        "\u202egnirts",
        "a\u200bb",
        7,
        None,
    ],
)
def test_hostile_name_is_refused(name: object) -> None:
    text = msgspec.json.encode({"kind": "name", "name": name})
    with pytest.raises(WireError):
        up.parse_upward(text)


def test_many_new_names_are_limited(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    names = set()
    for number in range(MANY):
        bob.say(up.Name(f"Bob {number}"))
        names.add(bob.session.name)
    assert len(names) == 5
    refusals = bob.errors()
    assert [one.code for one in refusals] == ["too_often"]
    assert ann.errors() == []


# --- asking ---


def test_driver_sees_the_asker_and_gives_the_wheel(house: House) -> None:
    ann, mia = driving(house)
    mia.say(up.Ask())
    assert (asked(ann).phase, asked(ann).name, phase(mia)) == ("asks", "Mia", "waits")
    assert ann.state.role == "driver" and house.duties[0] > 0.0, "a question stopped the car"
    answered(ann, give=True)
    assert house.duties == (0.0, 0.0)
    assert (ann.state.role, mia.state.role) == ("watching", "driver")
    assert (phase(ann), phase(mia)) == (None, None)
    ann.drive(1.0)
    mia.drive(1.0)
    assert house.duties == (0.0, 0.0), "the new driver lets go first"
    assert mia.state.stop == down.Stop("handover", "neutral")
    mia.drive_off()
    assert house.duties[0] > 0.0


def test_refused_asker_waits_before_asking_again(house: House) -> None:
    ann, mia = driving(house)
    mia.say(up.Ask())
    answered(ann, give=False)
    assert (phase(ann), phase(mia)) == (None, "later")
    assert ann.state.role == "driver" and house.duties[0] > 0.0
    mia.say(up.Ask())
    assert phase(ann) is None
    assert [(one.code, one.wait_s) for one in mia.errors()] == [("too_often", PAUSE_S)]
    house.now_s += PAUSE_S
    ann.drive(1.0)
    mia.say(up.Ask())
    assert phase(ann) == "asks"


def test_driver_that_never_answers_loses_nothing(house: House) -> None:
    ann, mia = driving(house)
    mia.say(up.Ask())
    for _ in range(round(ANSWER_S) + 1):
        house.now_s += 1.0
        ann.drive(1.0)
    assert (phase(ann), phase(mia)) == (None, "unanswered")
    assert ann.state.role == "driver" and house.duties[0] > 0.0


def test_asker_sees_the_time_until_the_wheel_is_free(house: House) -> None:
    ann, mia = driving(house)
    mia.say(up.Ask())
    assert mia.state.wait_s == pytest.approx(10.0)
    ann.drive(0.0)
    house.now_s += 7.5
    assert mia.state.wait_s == pytest.approx(2.5) and not mia.state.seat_free
    house.now_s += 2.5
    assert (mia.state.wait_s, mia.state.seat_free) == (0.0, True)
    mia.say(up.Ask())
    assert mia.state.role == "driver", "a free wheel is taken at once"


def test_fifty_taps_are_one_request(house: House, caplog: pytest.LogCaptureFixture) -> None:
    ann, mia = driving(house)
    with caplog.at_level(logging.INFO, "fpvcar.seat"):
        for _ in range(50):
            mia.say(up.Ask())
            house.now_s += 0.1
            ann.drive(1.0)
    assert caplog.text.count("asks Ann for the wheel") == 1
    assert mia.errors() == [] and phase(ann) == "asks"


def test_second_asker_is_shown_after_the_first_is_answered(house: House) -> None:
    ann, mia = driving(house)
    bob = house.visitor("Bob")
    mia.say(up.Ask())
    bob.say(up.Ask())
    assert (asked(ann).name, phase(mia), phase(bob)) == ("Mia", "waits", "waits")
    answered(ann, give=False)
    assert (asked(ann).name, phase(mia), phase(bob)) == ("Bob", "later", "waits")
    answered(ann, give=True)
    assert bob.state.role == "driver" and phase(mia) is None


def test_answer_counts_only_for_the_shown_asker(house: House) -> None:
    ann, mia = driving(house)
    bob = house.visitor("Bob")
    mia.say(up.Ask())
    shown = asked(ann).id
    ann.say(up.Answer(bob.session.video, give=True))
    assert ann.state.role == "driver" and phase(ann) == "asks"
    house.hub.leave(mia.session)
    assert phase(ann) is None, "the asker is gone"
    ann.say(up.Answer(shown, give=True))
    assert ann.state.role == "driver" and house.duties[0] > 0.0


def test_asker_that_lost_the_right_to_drive_gets_no_wheel(house: House) -> None:
    ann, mia = driving(house)
    mum = house.visitor("Mum", code="grownups")
    mia.say(up.Ask())
    shown = asked(ann).id
    mum.say(up.End(mia.session.video))
    ann.say(up.Answer(shown, give=True))
    assert (phase(ann), ann.state.role, mia.state.role) == (None, "driver", "watching")


@pytest.mark.parametrize("change", ["release", "grown-up"])
def test_request_ends_when_the_wheel_changes_hands(house: House, change: str) -> None:
    ann, mia = driving(house)
    mia.say(up.Ask())
    if change == "release":
        ann.say(up.Release())
    else:
        house.visitor("Mum", code="grownups").say(up.Take())
    assert (phase(ann), phase(mia)) == (None, None)


def test_requests_never_delay_wishes_and_stops(house: House) -> None:
    """The gate runs for no request, and a STOP holds through a hand-over."""
    ann, mia = driving(house)
    seq = house.control.decision
    house.hub.changed.clear()
    for number in range(MANY):
        mia.say(up.Ask())
        ann.say(up.Answer(f"stranger-{number}", give=True))
    assert house.control.decision is seq, "a request ran the gate"
    assert len(mia.session._outbox) < 5 and ann.errors() == []
    ann.drive(0.5)
    assert 0.0 < house.duties[0] < 1.0
    mia.say(up.Estop())
    assert house.duties == (0.0, 0.0)
    answered(ann, give=True)
    mia.drive_off()
    assert house.duties == (0.0, 0.0) and mia.state.stop == down.Stop("estop", "resume", "Mia")


def test_pages_under_new_ids_share_one_limit(house: House) -> None:
    ann, _ = driving(house)
    shown = 0
    for number in range(100):
        page = house.visitor(f"Eve {number}", client=f"client-{number:03}")
        page.say(up.Ask())
        if phase(ann):
            shown += 1
            answered(ann, give=False)
        house.hub.leave(page.session)
    assert shown == ASKS_BURST


def test_requests_take_bounded_memory() -> None:
    requests = WheelRequests()
    for number in range(MANY):
        now_s = number * 0.1
        requests.ask(f"client-{number}", now_s)
        for client in requests.waiting():
            requests.end(client, "later", now_s)
        assert len(requests._requests) <= ASKS_BURST + PAUSE_S * ASKS_PER_S + 1
    requests.expire(now_s + PAUSE_S)
    assert not requests._requests


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "ask", "now": True},
        {"kind": "answer"},
        {"kind": "answer", "id": "a b", "give": True},
        {"kind": "answer", "id": "a" * 65, "give": True},
        {"kind": "answer", "id": "abcdefgh"},
        {"kind": "answer", "id": "abcdefgh", "give": "yes"},
    ],
)
def test_malformed_request_is_refused(message: dict[str, object]) -> None:
    with pytest.raises(WireError):
        up.parse_upward(msgspec.json.encode(message))
