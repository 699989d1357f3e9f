"""Owner of buttons and lights: keeps pins, pages and driving in step.

    ButtonsThread --(edges)--> Contacts -+
    /ws/buttons ---(Hold, Choose)--------+--> Play --> LEDs, every page
    hub (head, reversing, steering, stopped) ------> lights

This module is independent of the gate and the wheels, and they of it.
"""

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from fpvcar.buttons import lights
from fpvcar.buttons.contacts import Contacts
from fpvcar.buttons.game import CAR, Play
from fpvcar.buttons.thread import ButtonsThread, Touch
from fpvcar.config import Button, Profile
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import State
from fpvcar.seat.vehicle import LightEvents
from fpvcar.wire import buttons as buttons_wire
from fpvcar.wire.buttons import Choose, Glow, Hold, View
from fpvcar.wire.errors import VERSION
from fpvcar.wire.json_text import encode_downward
from fpvcar.wire.telemetry import Recording

RESEND_S = 0.5
"""Period of repeated messages; a page turns grey after three missed ones."""
UNWIRED = {
    "red": Button("red", "circle"),
    "yellow": Button("yellow", "triangle"),
    "green": Button("green", "square"),
    "blue": Button("blue", "star"),
}
"""Buttons on the page of a car without wired buttons."""


Watcher = Callable[[View, tuple[bool, bool, bool, bool]], None]
"""Callback with the view and the state of head lights, reversing lights, left and
right indicator."""


def buttons_of(profile: Profile) -> Mapping[str, Button]:
    """Return the buttons of a car, wired or not, in the order of a mask's bits."""
    return profile.buttons or UNWIRED


class Page(Protocol):
    """Page with buttons: a session of /ws/buttons."""

    @property
    def source(self) -> str:
        """Unique id of the page, used as the source of its pushes."""

    def send_newest(self, text: str) -> None:
        """Send this text, or a newer one in its place."""


class Panel:
    """All buttons and lights of one car."""

    def __init__(
        self,
        profile: Profile,
        watcher: Watcher | None = None,
        clock_s: Clock = time.monotonic,
        dice: random.Random | None = None,
        code: str = "",
        events: LightEvents | None = None,
    ) -> None:
        """`watcher` is called after each step; it may neither wait nor raise. `code` is the drive
        code; `events` are those of the car's lights."""
        self.buttons = buttons_of(profile)
        self._lights = profile.lights
        self._clock_s = clock_s
        self._play = Play(len(self.buttons), dice or random.Random())
        self._wired = list(self.buttons.values())
        self._contacts = Contacts([button.button for button in self._wired])
        self._fades = [lights.Fade() for _ in self._wired]
        self._indicators, self._recorder = lights.Indicators(), lights.RecorderLamp()
        self._code_lamp, self._code = lights.CodeLamp(), code
        self._head = self._reversing = False
        self._pages: list[Page] = []
        self._view = View()
        self._seq, self._resend_s = 0, -math.inf
        self._shown: dict[int, float] = {}
        self._wake = asyncio.Event()
        self._due_s = self._up_s = -math.inf
        self._watcher = watcher
        self._thread = self._make_thread(profile)
        if events is not None:
            events.head.subscribe(self.set_head)
            events.motion.subscribe(self.follow)
            events.recording.subscribe(self.record)
            events.code.subscribe(self.blink_code)

    def _make_thread(self, profile: Profile) -> ButtonsThread | None:
        leds = [button.led for button in self._wired if button.led is not None]
        lamps = lights.levels(self._lights, False, False)
        contacts = self._contacts.gpios
        if not (contacts or leds or lamps):
            return None
        thread = ButtonsThread(profile, contacts, leds, self._clock_s)
        thread.began.subscribe(self._begin)
        thread.touched.subscribe(self._touch)
        return thread

    # Start and stop

    @property
    def state(self) -> State:
        """State of the pins."""
        return "ok" if self._thread is None else self._thread.state

    @property
    def view(self) -> View:
        """State of lights and game, shown on all pages."""
        return self._view

    def start(self) -> None:
        """Start the thread; call it from the loop of `run`."""
        if self._thread is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread and switch all lights off; takes at most a second."""
        if self._thread is not None:
            self._thread.stop()

    async def watch(self) -> None:
        """Raise RuntimeError when the thread has died."""
        if self._thread is not None:
            await self._thread.watch()
        # a car without button or light pins has no thread
        await asyncio.Event().wait()

    async def run(self) -> None:
        """Process due work, and pushes at once."""
        while True:
            pause_s = self.step()
            self._up_s = self._due_s
            with contextlib.suppress(TimeoutError):  # the timeout is the due time
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            self._wake.clear()

    # Contacts

    def _begin(self, closed: frozenset[int]) -> None:
        """Set the contacts as found at the start; a closed one is no push."""
        self._contacts.reset(closed)
        self._play.hold(CAR, 0, self._clock_s())
        self._wake.set()

    def _touch(self, touches: list[Touch]) -> None:
        for gpio, closed, at_s in touches:
            push = self._contacts.edge(gpio, closed, at_s)
            held = self._contacts.held
            if push:  # its previous release may be news as well
                self._play.hold(CAR, held & ~push, at_s)
            self._play.hold(CAR, held, at_s)
        self._act()

    # Pages

    def join(self, page: Page) -> None:
        self._pages.append(page)
        page.send_newest(self._glow())

    def leave(self, page: Page) -> None:
        """Remove a page and release its buttons."""
        if page in self._pages:
            self._pages.remove(page)
            self._play.hold(page.source, 0, self._clock_s())
            self._wake.set()

    def receive(self, page: Page, message: Hold | Choose) -> None:
        """Handle one valid message of a page."""
        now_s = self._clock_s()
        if isinstance(message, Hold):
            self._play.hold(page.source, message.held, now_s)
        else:
            self._play.choose(message.mode, now_s)
        self._act()

    def welcome(self, car: str) -> buttons_wire.Panel:
        """Return the first message for a page; `car` is the car's name on pages."""
        wire_buttons = tuple(
            buttons_wire.Button(name, button.colour, button.shape)
            for name, button in self.buttons.items()
        )
        return buttons_wire.Panel(VERSION, car, wire_buttons)

    # Hub

    def set_head(self, on: bool) -> None:
        self._head = on
        self._wake.set()

    def follow(self, throttle: float, steer: float, stopped: bool) -> None:
        """Update rear lights and indicators. Called often, so cheap."""
        now_s = self._clock_s()
        last_due_s, reversing = self._indicators.due_s, throttle < 0.0
        self._indicators.follow(steer, stopped, now_s)
        if reversing != self._reversing or last_due_s != self._indicators.due_s:
            self._reversing = reversing
            self._wake.set()

    def record(self, recording: Recording) -> None:
        """Update the recorder's LED, if any. Called often, so cheap."""
        last_state = self._recorder.due_s, self._recorder.lit
        self._recorder.follow(recording.on, recording.state == "ok", self._clock_s())
        if last_state != (self._recorder.due_s, self._recorder.lit):
            self._wake.set()

    def blink_code(self, network: str = "") -> None:
        """Blink the code on its LED, if any, for a page on this network."""
        if self._lights.code:
            self._code_lamp.blink(self._code, self._clock_s(), network)
            self._wake.set()

    # Due work

    def step(self) -> float | None:
        """Process due work; return the seconds until more is due, None for never."""
        now_s = self._clock_s()
        self._contacts.settle(now_s)
        self._play.hold(CAR, self._contacts.held, now_s)
        self._indicators.tick(now_s)
        self._recorder.tick(now_s)
        self._code_lamp.tick(now_s)
        self._update_leds(now_s)
        self._broadcast(now_s)
        if self._watcher is not None:
            sides = self._indicators.sides(now_s)
            self._watcher(self._view, (self._head, self._reversing, *sides))
        due_s = min(
            self._play.due_s,
            self._indicators.due_s,
            self._recorder.due_s,
            self._code_lamp.due_s,
            self._contacts.due_s,
            *(fade.due_s(now_s) for fade in self._fades),
            self._resend_s if self._pages else math.inf,
        )
        self._due_s = due_s
        return None if due_s == math.inf else max(0.0, due_s - now_s)

    def _act(self) -> None:
        """Show a push immediately, within the same turn of the loop."""
        self.step()
        if self._due_s < self._up_s:  # `run` would sleep past the next due time
            self._wake.set()

    def _update_leds(self, now_s: float) -> None:
        duties: dict[int, float] = {}
        lit = self._play.view.lit
        for number, button in enumerate(self._wired):
            fade = self._fades[number]
            fade.turn(bool(lit >> number & 1), now_s)
            if button.led is not None:
                duties[button.led] = button.brightness * fade.share(now_s)
        sides = self._indicators.sides(now_s)
        lamps = (self._recorder.lit, self._code_lamp.lit)
        duties |= lights.levels(self._lights, self._head, self._reversing, sides, *lamps)
        if duties != self._shown and self._thread is not None:
            self._shown = duties
            self._thread.show(duties)

    def _broadcast(self, now_s: float) -> None:
        view = self._play.view
        resend = bool(self._pages) and now_s >= self._resend_s
        if view == self._view and not resend:
            return
        self._view, self._resend_s = view, now_s + RESEND_S
        self._seq += 1
        text = self._glow()
        for page in self._pages:
            page.send_newest(text)

    def _glow(self) -> str:
        """Return the message to all pages, encoded once."""
        view = self._view
        glow = Glow(self._seq, view.lit, view.mode, view.length, view.done, view.best)
        return encode_downward(glow)
