"""Momentary buttons wired to the car: debounced pushes from edges. Pure.

edges -> Contact (one button) -> Contacts: the held buttons, a bit each
"""

import math
from collections.abc import Iterable, Sequence

UP_S = 0.03
"""Time without an edge after which a contact is open; worn ones bounce for 20 ms."""


class Contact:
    """Momentary button. A push counts at once, its release after bouncing has ended."""

    def __init__(self, closed: bool = False) -> None:
        """A contact that is closed from the start does not count as a push."""
        self._closed = self._silent = closed
        self._opened_s: float | None = None

    @property
    def down(self) -> bool:
        """True while it is pushed."""
        return self._closed and not self._silent

    @property
    def due_s(self) -> float:
        """Time at which `settle` may find it open."""
        return math.inf if self._opened_s is None else self._opened_s + UP_S

    def edge(self, closed: bool, at_s: float) -> bool:
        """Process an edge. Returns True for a push."""
        self.settle(at_s)
        if closed:
            push, self._closed, self._opened_s = not self._closed, True, None
            return push
        if self._closed:
            self._opened_s = at_s
        return False

    def settle(self, now_s: float) -> None:
        """Let time pass: open the contact once bouncing has ended."""
        if now_s >= self.due_s:
            self._closed = self._silent = False
            self._opened_s = None


class Contacts:
    """All contacts of a car. `wired` has the GPIO of each button, or None."""

    def __init__(self, wired: Sequence[int | None]) -> None:
        self._bits = {gpio: 1 << number for number, gpio in enumerate(wired) if gpio is not None}
        self._contacts: dict[int, Contact] = {}
        self.reset(())

    @property
    def gpios(self) -> list[int]:
        """Return the GPIOs of all contacts."""
        return list(self._bits)

    @property
    def held(self) -> int:
        """Bits of the buttons that are pushed."""
        bits = self._bits
        return sum(bits[gpio] for gpio, contact in self._contacts.items() if contact.down)

    @property
    def due_s(self) -> float:
        """Time at which `settle` may find another contact open."""
        return min((contact.due_s for contact in self._contacts.values()), default=math.inf)

    def reset(self, closed: Iterable[int]) -> None:
        """Set the contacts that are closed at the start of listening."""
        closed_gpios = set(closed)
        self._contacts = {gpio: Contact(gpio in closed_gpios) for gpio in self._bits}

    def edge(self, gpio: int, closed: bool, at_s: float) -> int:
        """Process an edge. Returns the bit of its button for a push, otherwise 0."""
        push = self._contacts[gpio].edge(closed, at_s)
        return self._bits[gpio] if push else 0

    def settle(self, now_s: float) -> None:
        """Let time pass for every contact."""
        for contact in self._contacts.values():
            contact.settle(now_s)
