"""Hub: admission, driver, stops, and messages to all pages."""

import random

import msgspec
import pytest
from testkit.hub import PROFILE, House, Visitor

from fpvcar.access.codes import Rights
from fpvcar.http.text_session import SessionClosed
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.hub import NAMELESS
from fpvcar.wire import down, up
from fpvcar.wire.settings import Lights, Limit


def test_first_visitor_of_the_bench_drives(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    assert (ann.state.role, bob.state.role) == ("driver", "watching")
    assert bob.state.driver == "Ann"
    ann.drive_off()
    assert house.duties[0] > 0.0
    assert ann.state.reason == "driving"


def test_blank_name_is_nobodys(house: House) -> None:
    house.visitor("\u2003 ")
    assert house.visitor("Bob").state.driver == NAMELESS


def test_real_car_has_no_driver_until_a_take() -> None:
    server = msgspec.structs.replace(PROFILE.server, first_takes_wheel=False)
    house = House(msgspec.structs.replace(PROFILE, server=server))
    ann = house.visitor("Ann")
    assert ann.state.role == "watching" and ann.state.seat_free
    ann.say(up.Take())
    assert ann.state.role == "driver"


def test_second_driver_gets_an_error_and_no_motion(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    ann.drive(0.0)
    bob.drive(0.0)
    for _ in range(50):
        bob.drive(1.0)
    assert house.duties == (0.0, 0.0)
    assert [one.what for one in bob.errors()] == ["not at the wheel"]
    assert "Ann" in bob.errors()[0].value


def test_take_of_an_occupied_wheel_names_driver_and_wait(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    ann.drive_off()
    bob.say(up.Take())
    assert bob.state.role == "watching"
    assert "Ann has the wheel" in bob.errors()[0].what
    assert "10 s" in bob.errors()[0].limit
    house.now_s += 10.0
    bob.say(up.Take())
    assert (ann.state.role, bob.state.role) == ("watching", "driver")


def test_new_driver_must_let_go_first(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    ann.drive_off()
    ann.say(up.Release())
    assert house.duties == (0.0, 0.0), "a release stops the car"
    assert ann.state.role == "watching" and bob.state.seat_free
    bob.say(up.Take())
    bob.drive(1.0)
    assert house.duties == (0.0, 0.0)
    assert bob.state.stop == down.Stop("handover", "neutral")
    bob.drive_off()
    assert house.duties[0] > 0.0 and bob.state.stop is None


def test_neutral_wishes_do_not_keep_the_wheel(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    house.now_s += 9.0
    ann.drive(0.0)
    house.now_s += 1.0
    bob.say(up.Take())
    assert bob.state.role == "driver"


def test_visitor_without_a_code_asks_for_it_and_stops(house: House) -> None:
    bob = house.visitor("Bob", drive=False)
    for message in (up.Take(), up.Ask(), Lights()):
        bob.say(message)
    assert house.lights.codes_told == ["10.0.0.1"] * 2, "for the wheel, not for the lights"
    assert bob.state.role == "watching" and not bob.state.may_drive
    house.visitor("Ann")
    for message in (up.Take(), up.Ask()):
        bob.say(message)
    assert len(house.lights.codes_told) == 3, "a wheel in use is no reason to show the code"
    bob.say(up.Estop())
    assert bob.state.stop == down.Stop("estop", "resume", "Bob")


def test_unlock_gives_the_rights_of_the_code(house: House) -> None:
    bob = house.visitor("Bob", drive=False)
    bob.say(up.Unlock("999999"))
    assert bob.errors()[-1].what == "wrong code"
    bob.say(up.Unlock("123456"))
    assert bob.state.may_drive and not bob.state.grown_up
    mum = house.visitor("Mum", drive=False, code="grownups")
    assert mum.state.may_drive and mum.state.grown_up


def test_sixth_wrong_code_waits_a_minute(house: House) -> None:
    bob = house.visitor("Bob", drive=False)
    for _ in range(6):
        bob.say(up.Unlock("999999"))
    assert [one.what for one in bob.errors()] == [*["wrong code"] * 5, "too many wrong codes"]
    bob.say(up.Unlock("123456"))
    assert not bob.state.may_drive
    house.now_s += 60.0
    bob.say(up.Unlock("123456"))
    assert bob.state.may_drive


def test_grown_up_takes_the_wheel_stops_and_limits(house: House) -> None:
    ann = house.visitor("Ann")
    mum = house.visitor("Mum", code="grownups")
    ann.drive_off()
    mum.say(Limit(0.5))
    assert ann.state.limit == 0.5 and ann.state.throttle == 0.5
    mum.say(up.Estop())
    assert house.duties == (0.0, 0.0)
    ann.say(up.Resume())
    assert ann.errors()[-1].what == "a grown-up stopped the car"
    assert ann.state.stop == down.Stop("estop_grown_up", "grown_up", "Mum")
    mum.say(up.Resume())
    mum.say(up.Take())
    assert (ann.state.role, mum.state.role) == ("watching", "driver")


def test_same_client_gets_its_seat_back_latched(house: House) -> None:
    ann = house.visitor("Ann")
    ann.drive_off()
    again = house.visitor("Ann")
    assert str(ann.session.closing) == "opened again elsewhere"
    assert again.state.role == "driver" and house.duties == (0.0, 0.0)
    again.drive(1.0)
    assert house.duties == (0.0, 0.0)
    house.hub.leave(ann.session)
    again.drive_off()
    assert house.duties[0] > 0.0, "the old socket's end stopped the new driver"


def test_replaced_socket_acts_no_more(house: House) -> None:
    ann = house.visitor("Ann")
    ann.drive(0.0)
    again = house.visitor("Ann")
    again.drive(0.0)
    with pytest.raises(SessionClosed, match="opened again elsewhere"):
        ann.drive(1.0)
    assert house.duties == (0.0, 0.0)
    with pytest.raises(SessionClosed):
        ann.say(up.Release())
    assert again.state.role == "driver"
    assert list(house.hub.sessions) == [again.session]


def test_rights_last_while_the_page_opens_another_socket(house: House) -> None:
    house.visitor("Mum", drive=False, code="grownups")
    again = house.visitor("Mum", drive=False)
    assert again.state.may_drive and again.state.grown_up


def test_rights_of_a_lost_driver_end_with_the_seat(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    mum.say(up.Take())
    house.hub.leave(mum.session)
    again = house.visitor("Mum", drive=False)
    assert again.state.role == "driver" and again.state.grown_up
    house.hub.leave(again.session)
    house.now_s += 10.0
    house.hub.broadcast()
    again = house.visitor("Mum", drive=False)
    assert again.state.role == "watching" and not again.state.may_drive


def test_video_id_from_a_url_takes_no_seat(house: House) -> None:
    ann = house.visitor("Ann")
    welcome = ann.session._outbox[0]
    assert isinstance(welcome, down.Welcome) and house.hub.sessions.drives(welcome.video)
    assert welcome.video != ann.session.client
    house.hub.leave(ann.session)
    eve = house.visitor("Eve", client=welcome.video, drive=False)
    assert eve.state.role == "watching" and not eve.state.may_drive
    assert eve.session.video != welcome.video
    assert not house.hub.sessions.drives(ann.session.client)
    assert house.hub.sessions.of_video(welcome.video) is None
    again = house.visitor("Ann", drive=False)
    assert again.session.video == welcome.video, "pictures come without a round trip"
    assert house.hub.sessions.of_video(welcome.video) is again.session


def test_driver_leaving_stops_the_car_and_keeps_the_seat_10_s(house: House) -> None:
    ann, bob = house.visitor("Ann"), house.visitor("Bob")
    ann.drive_off()
    house.hub.leave(ann.session)
    house.hub.leave(ann.session)
    assert house.duties == (0.0, 0.0)
    assert bob.state.stop == down.Stop("silence", "neutral")
    assert bob.state.driver == "Ann" and not bob.state.seat_free
    house.now_s += 10.0
    assert bob.state.driver is None and bob.state.seat_free


def test_ten_thousand_old_commands_move_nothing() -> None:
    """Stale, doubled and reordered full throttle; no other rule holds the car."""
    house, dice = House(), random.Random(1)
    ann, stale = house.visitor("Ann"), up.Drive(0, 0.0, 1.0, 1.0)
    ann.seq = 1_000_000
    for number in range(10_000):
        house.now_s += 0.004
        if number % 10 == 0:  # in time: the reference of this link
            ann.drive(0.0)
        now_ms, now_us = house.now_s * 1000.0, int(house.now_s * 1e6)
        if number % 3 == 0:
            ann.seq += 1
            age_ms = 201.0 + dice.random() ** 9 * 1e6
            seen_us = now_us - int(age_ms * 1000.0)
            ann.session.fresh.sent(seen_us, seen_us)
            stale = up.Drive(ann.seq, now_ms - age_ms, 1.0, 1.0, seen_us)
            ann.say(stale)
        elif number % 3 == 1:
            ann.say(stale)
        else:  # from before the first; its time looks fresh
            ann.session.fresh.sent(now_us, now_us)
            ann.say(up.Drive(dice.randrange(1_000_000), now_ms, 1.0, 1.0, now_us))
        house.control.step()
        assert house.duties == (0.0, 0.0) and house.hub.stop() is None, number
    ann.drive(1.0)
    assert house.duties[0] > 0.0, "it was not their age that was refused"


def test_stale_wish_moves_nothing_stale_neutral_lets_go(house: House) -> None:
    ann = house.visitor("Ann")
    ann.drive(0.0)
    ann.drive(1.0, late_s=0.25)
    assert house.duties == (0.0, 0.0)
    ann.drive(1.0)
    assert house.duties[0] > 0.0
    ann.drive(0.0, late_s=0.25)
    assert house.duties == (0.0, 0.0)


def test_ping_is_answered_with_the_cars_clock(house: House) -> None:
    ann = house.visitor("Ann")
    ann.say(up.Ping(7, 12.5))
    pong = ann.session._outbox[-1]
    assert isinstance(pong, down.Pong)
    assert (pong.seq, pong.t, pong.clock_us) == (7, 12.5, 100_000_000)


def test_hello_comes_first_and_once(house: House) -> None:
    stranger = Visitor(house, Session("10.0.0.9", Rights(), PROFILE.gate))
    for _ in range(2):
        stranger.say(up.Take())
    with pytest.raises(SessionClosed, match="3 bad messages in a row"):
        stranger.say(up.Take())
    house.hub.leave(stranger.session)
    ann = house.visitor("Ann")
    ann.say(up.Hello(1, "client-Ann2", "Ann"))
    assert ann.errors()[-1].what == "hello twice"


def test_report_of_a_page_is_kept(house: House) -> None:
    ann = house.visitor("Ann")
    report = up.Report("webcodecs", 13.0, 4.0, 30.0, 0)
    ann.say(report)
    assert ann.session.report is report
    assert house.hub.reports() == [
        {
            "name": "Ann",
            "drives": True,
            "unknown_messages": 0,
            "report": {
                "path": "webcodecs",
                "picture_ms": 13.0,
                "link_ms": 4.0,
                "fps": 30.0,
                "dropped": 0,
            },
        }
    ]


def test_drivers_wish_is_the_sole_message_that_moves_the_car(house: House) -> None:
    ann = house.visitor("Ann")
    take, release, resume, estop = up.Take(), up.Release(), up.Resume(), up.Estop()
    more = Lights(), Limit(1.0), up.Ping(1, 1.0), up.Report("x"), up.Unlock("1")
    for message in (take, release, resume, estop, *more):
        ann.say(message)
        assert house.duties == (0.0, 0.0)


def test_message_of_a_missing_feature_is_refused(house: House) -> None:
    mum = house.visitor("Mum", code="grownups")
    mum.say(up.SetIntercom(True))
    error = mum.errors()[-1]
    assert (error.code, error.value) == ("unknown_kind", "intercom")
    assert mum.state.parts == {}
