"""Momentary buttons that are wired to the car: pushes out of bouncing edges. Pure.

edges -> Contact (one button) -> Contacts: the buttons that are held, a bit each
"""

import math
from collections.abc import Iterable, Sequence

UP_S = 0.03
"""A contact is open after so long without a touch; worn ones bounce for 20 ms."""


class Contact:
    """One momentary button. A push counts at once, its end when bouncing is over."""

    def __init__(self, closed: bool = False) -> None:
        """A contact that is closed before anybody looked is no push."""
        self._closed = self._silent = closed
        self._opened_s: float | None = None

    @property
    def down(self) -> bool:
        """Is it being pushed?"""
        return self._closed and not self._silent

    @property
    def due_s(self) -> float:
        """When `settle` will find it open."""
        return math.inf if self._opened_s is None else self._opened_s + UP_S

    def edge(self, closed: bool, at_s: float) -> bool:
        """It closed or opened. True: that is a push."""
        self.settle(at_s)
        if closed:
            push, self._closed, self._opened_s = not self._closed, True, None
            return push
        if self._closed:
            self._opened_s = at_s
        return False

    def settle(self, now_s: float) -> None:
        """Time passes: it may be open for good."""
        if now_s >= self.due_s:
            self._closed = self._silent = False
            self._opened_s = None


class Contacts:
    """All contacts of a car. `wired` has the GPIO of each button, or None."""

    def __init__(self, wired: Sequence[int | None]) -> None:
        self._bits = {
            gpio: 1 << number for number, gpio in enumerate(wired) if gpio is not None
        }
        self._contacts: dict[int, Contact] = {}
        self.find(())

    @property
    def gpios(self) -> list[int]:
        """Where they are wired."""
        return list(self._bits)

    @property
    def held(self) -> int:
        """The buttons that are being pushed, a bit each."""
        bits = self._bits
        return sum(bits[gpio] for gpio, one in self._contacts.items() if one.down)

    @property
    def due_s(self) -> float:
        """When `settle` will find another one open."""
        return min((one.due_s for one in self._contacts.values()), default=math.inf)

    def find(self, closed: Iterable[int]) -> None:
        """They are as somebody found them who begins to look."""
        found = set(closed)
        self._contacts = {gpio: Contact(gpio in found) for gpio in self._bits}

    def edge(self, gpio: int, closed: bool, at_s: float) -> int:
        """One closed or opened: the bit of its button if that is a push, else 0."""
        push = self._contacts[gpio].edge(closed, at_s)
        return self._bits[gpio] if push else 0

    def settle(self, now_s: float) -> None:
        """Time passes: some may be open for good."""
        for contact in self._contacts.values():
            contact.settle(now_s)
