"""Contacts that bounce: pushes and holds; no clock, no pins."""

import math

from hypothesis import given
from hypothesis import strategies as some

from fpvcar.buttons.contacts import UP_S, Contact, Contacts

EPSILON_S = 1e-6


def pushes(contact: Contact, edges: list[tuple[float, bool]]) -> int:
    return sum(contact.edge(closed, at_s) for at_s, closed in edges)


def train(start_s: float, gaps_s: list[float], closed: bool) -> list[tuple[float, bool]]:
    """Return edges `gaps_s` apart that begin and end with `closed`."""
    edges = [(start_s, closed)]
    for number, gap_s in enumerate(gaps_s):
        edges.append((edges[-1][0] + gap_s, closed == bool(number % 2)))
    return edges if len(edges) % 2 else edges[:-1]


bounces = some.lists(some.floats(0.0, UP_S - EPSILON_S), max_size=20)


@given(bounces, bounces, some.floats(0.04, 2.0), some.integers(1, 4))
def test_bouncing_contact_never_makes_two_pushes(
    closing: list[float], opening: list[float], hold_s: float, times: int
) -> None:
    contact, at_s, counted = Contact(), 10.0, 0
    for _ in range(times):
        down = train(at_s, closing, True)
        up = train(down[-1][0] + hold_s, opening, False)
        counted += pushes(contact, down + up)
        at_s = up[-1][0] + UP_S
        contact.settle(at_s)
        assert not contact.down
    assert counted == times


def test_push_counts_at_once_and_its_release_later() -> None:
    contact = Contact()
    assert contact.edge(True, 1.0) and contact.down
    assert contact.due_s == math.inf
    assert not contact.edge(False, 2.0)
    assert contact.down and contact.due_s == 2.0 + UP_S
    contact.settle(2.0 + UP_S - EPSILON_S)
    assert contact.down
    contact.settle(contact.due_s)
    assert not contact.down and contact.due_s == math.inf


def test_next_push_counts_without_a_settle_between() -> None:
    contact = Contact()
    assert contact.edge(True, 1.0)
    assert not contact.edge(False, 1.1)
    assert contact.edge(True, 1.1 + UP_S)


def test_contact_closed_at_start_counts_once_it_was_open() -> None:
    contact = Contact(closed=True)
    assert not contact.edge(True, 1.0) and not contact.down
    assert not contact.edge(False, 2.0)
    assert not contact.edge(True, 2.0 + UP_S / 2) and not contact.down
    assert not contact.edge(False, 3.0)
    assert contact.edge(True, 3.0 + UP_S) and contact.down


def test_held_mask_has_one_bit_per_button() -> None:
    contacts = Contacts([17, None, 4])
    assert contacts.gpios == [17, 4] and contacts.held == 0
    assert contacts.due_s == math.inf
    assert contacts.edge(4, True, 1.0) == 0b100
    assert contacts.edge(17, True, 1.5) == 0b1 and contacts.held == 0b101
    assert contacts.edge(4, False, 2.0) == 0
    assert contacts.held == 0b101 and contacts.due_s == 2.0 + UP_S
    contacts.settle(contacts.due_s)
    assert contacts.held == 0b1


def test_contact_found_closed_is_no_push() -> None:
    contacts = Contacts([17, 4])
    contacts.edge(4, True, 1.0)
    contacts.reset([17])
    assert contacts.held == 0 and contacts.edge(17, True, 2.0) == 0
    assert contacts.edge(4, True, 2.0) == 0b10


def test_car_without_contacts_has_no_due_time() -> None:
    assert Contacts([None, None]).due_s == math.inf
    assert Contacts([]).held == 0
