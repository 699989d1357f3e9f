"""Decision to open the car's own network: the machine alone, with time passed in."""

import pytest

from fpvcar.runtime.texts import BOTH, Text
from fpvcar.wifi.core import KEY_WRONG, OWN_S, RETRY_S, SEARCH_S, Link, Machine, Open, Search, State

IDLE, OWN = Link("idle"), Link("own")
HOME = Link("network", "Home")
NO_DNSMASQ, OFF = Text("no_dnsmasq", "no dnsmasq"), Text("off", "switched off")


@pytest.fixture
def machine() -> Machine:
    return Machine(True, 100.0)


def phase(machine: Machine) -> str:
    return machine.state.phase


def opened(machine: Machine, at_s: float) -> None:
    """Bring the machine to its own network at `at_s`."""
    assert machine.update(IDLE, False, at_s) == Open()
    assert phase(machine) == "opening"
    machine.update(OWN, False, at_s)
    assert phase(machine) == "own"


def test_known_network_is_left_alone(machine: Machine) -> None:
    assert machine.update(IDLE, False, 101.0) is None
    assert machine.update(HOME, False, 102.0) is None
    assert machine.state == State("known", 102.0, "Home")
    assert machine.due_s() is None
    assert machine.update(HOME, False, 9_999.0) is None
    assert machine.state.since_s == 102.0


def test_own_network_opens_after_a_vain_search(machine: Machine) -> None:
    assert machine.due_s() == 100.0 + SEARCH_S
    assert machine.update(IDLE, False, 99.9 + SEARCH_S) is None
    opened(machine, 100.0 + SEARCH_S)


def test_lost_network_is_searched_for_first(machine: Machine) -> None:
    machine.update(HOME, False, 200.0)
    assert machine.update(IDLE, False, 300.0) is None, "NetworkManager does"
    assert machine.update(IDLE, False, 299.9 + SEARCH_S) is None
    opened(machine, 300.0 + SEARCH_S)


def test_unused_own_network_makes_room_for_a_search(machine: Machine) -> None:
    opened(machine, 200.0)
    assert machine.update(OWN, False, 199.9 + OWN_S) is None
    assert machine.update(OWN, False, 200.0 + OWN_S) == Search()
    assert phase(machine) == "searching"
    machine.update(HOME, False, 201.0 + OWN_S)
    assert phase(machine) == "known"


def test_own_network_stays_while_pages_are_open(machine: Machine) -> None:
    opened(machine, 200.0)
    for more_s in range(0, 3000, 30):
        assert machine.update(OWN, True, 200.0 + more_s) is None
    last_s = 200.0 + 2970
    assert machine.update(OWN, False, last_s + OWN_S - 0.1) is None
    assert machine.update(OWN, False, last_s + OWN_S) == Search()


def test_join_from_the_own_network_makes_it_known(machine: Machine) -> None:
    opened(machine, 200.0)
    machine.join("Home", 210.0)
    assert machine.state == State("joining", 210.0, "Home")
    machine.joined("Home", 220.0)
    assert machine.state == State("known", 220.0, "Home")


def test_wrong_key_reopens_the_own_network_with_the_reason(machine: Machine) -> None:
    opened(machine, 200.0)
    machine.join("Home", 210.0)
    assert machine.not_joined(KEY_WRONG, 220.0) == Open()
    machine.update(OWN, True, 221.0)
    assert machine.state == State("own", 221.0, "Home", KEY_WRONG)
    assert machine.update(OWN, False, 221.0 + OWN_S) == Search()
    assert machine.state.reason == KEY_WRONG, "it stays until it is joined"
    machine.update(HOME, False, 230.0 + OWN_S)
    assert machine.state.reason is None


def test_failed_join_from_a_known_network_searches_again(machine: Machine) -> None:
    machine.update(HOME, False, 200.0)
    machine.join("Other", 210.0)
    assert machine.not_joined(KEY_WRONG, 220.0) == Search()
    assert machine.state == State("searching", 220.0, "Other", KEY_WRONG)
    opened(machine, 220.0 + SEARCH_S)
    assert machine.state.reason == KEY_WRONG


def test_own_network_that_fails_to_open_is_tried_again(machine: Machine) -> None:
    machine.update(IDLE, False, 100.0 + SEARCH_S)
    machine.not_opened(NO_DNSMASQ, 140.0)
    assert machine.state == State("failed", 140.0, "", NO_DNSMASQ)
    assert machine.update(IDLE, False, 139.9 + RETRY_S) is None
    assert machine.update(IDLE, False, 140.0 + RETRY_S) == Open()
    machine.not_opened(NO_DNSMASQ, 180.0)
    assert machine.state.reason == NO_DNSMASQ, "said once"


def test_failed_join_and_failed_open_are_both_told(machine: Machine) -> None:
    opened(machine, 200.0)
    machine.join("Home", 210.0)
    machine.not_joined(KEY_WRONG, 220.0)
    machine.not_opened(NO_DNSMASQ, 221.0)
    assert machine.state == State("failed", 221.0, "Home", BOTH(first=KEY_WRONG, second=NO_DNSMASQ))


def test_unusable_radio_gives_its_reason(machine: Machine) -> None:
    machine.update(Link("none", reason=OFF), False, 105.0)
    assert machine.state == State("absent", 105.0, "", OFF)
    assert machine.due_s() is None
    assert machine.update(IDLE, False, 110.0) is None
    assert phase(machine) == "searching"


def test_profile_without_own_network_opens_no_network() -> None:
    machine = Machine(False, 100.0)
    assert machine.due_s() is None
    assert machine.update(IDLE, False, 10_000.0) is None
    machine.join("Home", 10_001.0)
    assert machine.not_joined(KEY_WRONG, 10_002.0) == Search()
