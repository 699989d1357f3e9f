"""Re-locking, by a push and by time; driving rights, and their end by a grown-up."""

import asyncio

from testkit.hub import PROFILE, House, Visitor

from fpvcar.access.codes import Rights
from fpvcar.access.remembered_browsers import GROWN_UP_S
from fpvcar.seat.drive_socket import Session
from fpvcar.wire import down, up
from fpvcar.wire.settings import Lights, Limit


def people(visitor: Visitor) -> dict[str, down.Person]:
    """Return the people on a grown-up's page, by name."""
    visitor.say(up.Who())
    answer = visitor.session._outbox[-1]
    assert isinstance(answer, down.People)
    return {one.name: one for one in answer.people}


def remembered(house: House, visitor: Visitor) -> None:
    """Let its page fetch the cookie."""
    passes = [one for one in visitor.session._outbox if isinstance(one, down.Pass)]
    assert house.hub.authorization.claim(passes[-1].ticket) is visitor.session.device
    assert visitor.session.device is not None


def again(house: House, visitor: Visitor, name: str) -> Visitor:
    """Open a new page on the same device: with the cookie, without a code."""
    device = visitor.session.device
    found = device and house.devices.find(house.devices.cookie(device), house.now_s)
    session = Session("10.0.0.1", Rights(), PROFILE.gate, found)
    made = Visitor(house, session)
    made.say(up.Hello(1, f"client-{name}", name))
    return made


def test_lock_ends_grown_up_rights_on_all_pages_of_a_device(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    remembered(house, mum)
    tab = again(house, mum, "Tab")
    assert tab.state.grown_up
    tab.say(up.Lock())
    assert not mum.state.grown_up and not tab.state.grown_up
    assert mum.state.may_drive, "a driver's rights stay"
    mum.say(Limit(0.5))
    assert mum.errors()[-1].what == "only a grown-up sets the speed limit"
    assert not again(house, mum, "Third").state.grown_up, "the cookie, too"
    mum.say(up.Unlock("grownups"))
    assert mum.state.grown_up and again(house, mum, "Fourth").state.grown_up


def test_lock_without_a_cookie_is_for_its_page_only(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    dad = house.visitor("Dad", drive=False, code="grownups")
    mum.say(up.Lock())
    assert not mum.state.grown_up and dad.state.grown_up


def test_grown_up_rights_end_after_half_an_hour_without_use(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    house.now_s += GROWN_UP_S - 1.0
    mum.say(Lights())
    house.now_s += GROWN_UP_S - 1.0
    mum.say(up.Ping(1, 1.0))
    mum.say(up.Report("mse"))
    mum.say(up.Who())
    mum.drive(0.0)
    assert mum.state.grown_up
    house.now_s += 1.0
    assert not mum.state.grown_up and mum.state.may_drive
    assert mum.errors()[-1].limit == "30 min without use"
    again = len(mum.errors())
    assert not mum.state.grown_up and len(mum.errors()) == again, "said once"


def test_use_on_another_page_keeps_grown_up_rights() -> None:
    house = House(utc_s=lambda: house.now_s)
    mum = house.visitor("Mum", drive=False, code="grownups")
    remembered(house, mum)
    device = mum.session.device
    assert device is not None
    house.now_s += GROWN_UP_S - 1.0
    house.devices.note_use(device, house.now_s)  # in the way of the recordings page
    house.now_s += GROWN_UP_S - 1.0
    assert mum.state.grown_up
    house.now_s += 1.0
    assert not mum.state.grown_up and mum.errors()[-1].limit == "30 min without use"


def test_page_opened_again_does_not_use_grown_up_rights() -> None:
    """A phone reopens its page at each wake-up, identified by its page's id or its cookie."""
    house = House(utc_s=lambda: house.now_s)
    mum = house.visitor("Mum", drive=False, code="grownups")
    dad = house.visitor("Dad", drive=False, code="grownups")
    remembered(house, dad)
    house.now_s += GROWN_UP_S - 1.0
    mum, dad = house.visitor("Mum", drive=False), again(house, dad, "Dad")
    tab = again(house, dad, "Tab")
    assert all(one.state.grown_up for one in (mum, dad, tab))
    house.now_s += 1.0
    assert not any(one.state.grown_up for one in (mum, dad, tab))
    mum = house.visitor("Mum", drive=False, code="grownups")
    house.now_s += GROWN_UP_S - 1.0
    assert mum.state.grown_up, "a code is a use"


def test_clock_step_does_not_lock_a_page_in_use() -> None:
    """An idle page of the same device does not lock it either."""
    utc_s = [1000.0]
    house = House(utc_s=lambda: utc_s[0])
    mum = house.visitor("Mum", drive=False, code="grownups")
    remembered(house, mum)
    tab = again(house, mum, "Tab")
    house.now_s += GROWN_UP_S - 1.0
    tab.say(Lights())
    house.now_s += 1.0
    utc_s[0] = 1.7e9
    assert mum.state.grown_up and tab.state.grown_up
    house.now_s += GROWN_UP_S
    assert not mum.state.grown_up and not tab.state.grown_up


def test_grown_up_sees_drivers_present_and_away(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    mum.say(up.Release())
    ann = house.visitor("Ann", drive=False, code="123456", address="8.8.8.8")
    house.visitor("Eve", drive=False)
    ann.say(up.Take())
    remembered(house, ann)
    bob = house.visitor("Bob", drive=False, code="123456", address="127.0.0.1")
    remembered(house, bob)
    house.hub.leave(bob.session)
    seen = people(mum)
    assert set(seen) == {"Mum", "Ann", "Bob", "Eve"}
    assert [name for name, one in seen.items() if one.watches] == ["Eve"]
    assert seen["Mum"].you and seen["Mum"].grown_up and not seen["Ann"].you
    assert seen["Ann"].drives and not seen["Ann"].grown_up
    assert seen["Ann"].where == "elsewhere" and seen["Ann"].away_s == 0.0
    assert seen["Bob"].where == "this computer" and not seen["Bob"].drives
    ann.say(up.Who())
    assert ann.errors()[-1].what == "only a grown-up sees the list of drivers"


def test_driver_ended_by_a_grown_up_loses_the_device(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    mum.say(up.Release())
    ann = house.visitor("Ann", drive=False, code="123456")
    remembered(house, ann)
    tab = again(house, ann, "Tab")
    waiting = Session("10.0.0.1", Rights(), PROFILE.gate, ann.session.device)
    ann.say(up.Take())
    ann.drive_off()
    assert house.duties[0] > 0.0
    device = ann.session.device
    assert device is not None
    ann.say(up.End(people(mum)["Mum"].id))
    assert ann.errors()[-1].what == "only a grown-up ends the rights of others"
    mum.say(up.End(device.id))
    assert house.duties == (0.0, 0.0) and mum.state.driver is None
    for one in (ann, tab):
        assert not one.state.may_drive and one.state.role == "watching"
        assert one.errors()[-1].what == "a grown-up has ended your rights"
    seen = people(mum)
    assert [name for name, one in seen.items() if not one.watches] == ["Mum"]
    assert house.devices.find(house.devices.cookie(device), house.now_s) is None
    late = Visitor(house, waiting)  # its socket was open before
    late.say(up.Hello(1, "client-late", "Late"))
    assert not late.state.may_drive


def test_driver_with_a_lost_link_is_ended_for_good(house: House) -> None:
    mum = house.visitor("Mum", drive=False, code="grownups")
    mum.say(up.Release())
    ann = house.visitor("Ann", drive=False, code="123456")
    ann.say(up.Take())
    mum.say(up.Who())
    house.hub.leave(ann.session)
    mum.say(up.End(ann.session.video))
    assert mum.state.driver is None
    assert not house.visitor("Ann", drive=False).state.may_drive


def test_returning_client_keeps_its_device(house: House) -> None:
    ann = house.visitor("Ann", drive=False, code="123456")
    remembered(house, ann)
    ann.say(up.Take())
    replaced = house.visitor("Ann", drive=False)
    assert replaced.session.device is ann.session.device
    house.hub.leave(ann.session)
    house.hub.leave(replaced.session)
    back = house.visitor("Ann", drive=False)
    assert back.session.device is ann.session.device and back.state.role == "driver"


def test_ticket_is_offered_only_without_a_cookie(house: House) -> None:
    ann = house.visitor("Ann", drive=False, code="123456")
    remembered(house, ann)
    told = len(ann.session._outbox)
    ann.say(up.Unlock("grownups"))
    assert len(ann.session._outbox) == told and ann.state.grown_up
    eve = house.visitor("Eve", drive=False, code="123456")
    assert eve.session.ticket
    for wrong in ("", "x", "é", "\udcff"):
        assert house.hub.authorization.claim(wrong) is None, wrong


def test_grown_up_is_told_while_the_list_cannot_be_saved() -> None:
    house = House()  # its devices.json is in a folder that does not exist
    mum = house.visitor("Mum", drive=False, code="grownups")
    asyncio.run(house.devices.save(0.0))
    mum.say(up.Who())
    answer = mum.session._outbox[-1]
    assert isinstance(answer, down.People)
    assert answer.unsaved is not None and answer.unsaved.key == "os_enoent"
