"""Thread at the pins of buttons and lights: edges to the panel, brightness to the pins.

It decides nothing: contact changes with their times go up, brightness per pin comes down.
"""

import asyncio
import contextlib
import select
import socket
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import Edge, Edges, IoPins
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.service import Event
from fpvcar.runtime.workers import STOP_S, Worker

STEADY_US = 1000
"""Shorter pulses are a motor's sparks, not pushes. contacts.py handles bouncing."""
SETTLE_S = 0.005
LED_HZ = 800
"""pigpiod's default frequency, with 250 steps; free of visible flicker."""
LOOK_S = 1.0
TICKS = 1 << 32


T = TypeVar("T")


class Touch(NamedTuple):
    """Change of a contact to ground, timed by CLOCK_MONOTONIC."""

    gpio: int
    closed: bool
    at_s: float


def touches(edges: Sequence[Edge], now_s: float) -> list[Touch]:
    """Return the contact changes in a report of edges; the last edge is from now.
    With the pull-up, level 0 means closed."""
    if not edges:
        return []
    last_us = edges[-1].tick_us
    return [
        Touch(gpio, not level, now_s - (last_us - tick_us) % TICKS / 1e6)
        for tick_us, gpio, level in edges
    ]


class ButtonsThread(Worker):
    """Contacts and lights of one car.

    It publishes on the loop of `start`: `began` with the contacts that are closed when it starts to
    listen, and with an empty set when it loses the pins; `touched` for edges.
    """

    def __init__(
        self,
        profile: Profile,
        contacts: Sequence[int],
        leds: Sequence[int],
        clock_s: Clock = time.monotonic,
    ) -> None:
        super().__init__("buttons")
        self._profile = profile
        self._contacts, self._leds = tuple(contacts), tuple(leds)
        self.began, self.touched = Event[frozenset[int]](), Event[list[Touch]]()
        self._clock_s = clock_s
        self._duties: Mapping[int, float] = {}
        self._bell: socket.socket | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung, self._bell = socket.socketpair()
        self._bell.setblocking(False)
        super().start()

    def show(self, duties: Mapping[int, float]) -> None:
        """Set the brightness of each pin: 0 to 1 for LEDs, 0 or 1 for other lights."""
        self._duties = duties
        self.wake()

    def wake(self) -> None:
        """End the wait for edges."""
        if self._bell is not None:
            with contextlib.suppress(BlockingIOError):  # a wake-up is already pending
                self._bell.send(b"!")

    def stop(self, wait_s: float = STOP_S) -> None:
        """End the thread and switch all lights off."""
        self.ending = True
        self.wake()
        super().stop(wait_s)
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.close()
            self._rung.close()

    # In the thread

    def live(self) -> None:
        """Update lights and read edges, whichever is due. May raise PinsFault."""
        with contextlib.closing(backends.open_pins(self._profile)) as pins:
            self._work(pins)

    def _work(self, pins: IoPins) -> None:
        applied: dict[int, float] = {}
        with contextlib.ExitStack() as stack:
            for gpio in self._leds:
                pins.set_frequency(gpio, LED_HZ)
            edges = self._listen(pins, stack)
            self.set_state("ok")
            while not self.ending:
                self._show(pins, applied, self._duties)
                self._read_edges(pins, edges)
        self._show(pins, applied, dict.fromkeys(applied, 0.0))

    def _publish(self, event: Event[T], value: T) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended before the thread
            self._loop.call_soon_threadsafe(event.publish, value)

    def lost(self) -> None:
        """Report that no contact is known to be closed."""
        self._publish(self.began, frozenset())

    def _listen(self, pins: IoPins, stack: contextlib.ExitStack) -> Edges | None:
        if not self._contacts:
            return None
        for gpio in self._contacts:
            pins.input_pull_up(gpio, STEADY_US)
        time.sleep(SETTLE_S)
        edges = backends.open_edges(self._profile, pins, self._contacts)
        stack.enter_context(contextlib.closing(edges))
        edges.read(SETTLE_S)
        closed = (gpio for gpio in self._contacts if not edges.level(gpio))
        self._publish(self.began, frozenset(closed))
        return edges

    def _read_edges(self, pins: IoPins, edges: Edges | None) -> None:
        sources: list[socket.socket | Edges] = [self._rung]
        if edges is not None:
            sources.append(edges)
        ready, _, _ = select.select(sources, [], [], LOOK_S)
        if not ready:
            pins.check()  # raises PinsFault if the pins are gone
        if self._rung in ready:
            self._rung.recv(4096)
        if edges in ready and edges is not None:
            changes = touches(edges.read(0.0), self._clock_s())
            if changes:
                self._publish(self.touched, changes)

    def _show(self, pins: IoPins, applied: dict[int, float], duties: Mapping[int, float]) -> None:
        changed = [item for item in duties.items() if applied.get(item[0]) != item[1]]
        # Each change is a blocking call: pushes go before fading lights.
        changed.sort(key=lambda item: applied.get(item[0], 0.0) - item[1])
        for gpio, duty in changed:
            if duty in (0.0, 1.0):
                pins.write(gpio, int(duty))
            else:
                pins.pwm(gpio, duty)
            applied[gpio] = duty
