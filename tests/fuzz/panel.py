"""The oracle of /ws/buttons: effects of two pages and the car's contacts on the panel."""

import json
from types import SimpleNamespace
from typing import Any

import msgspec

from fpvcar.buttons.game import CHOOSE_S
from fpvcar.buttons.panel import Panel
from fpvcar.buttons.thread import Touch
from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.wire.buttons import Choose, Hold, parse_buttons_upward
from fpvcar.wire.errors import WireError

WIRED = profiles.load(paths.HARDWARE / "bench.toml")
CONTACTS = [one.button for one in WIRED.buttons.values() if one.button is not None]
PINS = {one.led for one in WIRED.buttons.values()} | {
    gpio for gpios in msgspec.structs.astuple(WIRED.lights) for gpio in gpios
}
MODES = {"free", "rainbow", "show", "turn", "cheer", "sad"}
EDGE = b"\x00"
"""First byte of a contact's line. The low bits of the next byte name the contact, its high bit
means closed or open."""


class Page:
    """A page that checks each message that it receives."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.heard = 0

    def send_newest(self, text: str) -> None:
        glow = json.loads(text)
        self.heard += 1
        assert 0 <= glow["lit"] < 1 << len(WIRED.buttons) and glow["mode"] in MODES
        assert 0 <= glow["done"] <= glow["length"] and glow["best"] >= 0
        assert len(text) < 200


class Room:
    """A wired panel whose clock the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0
        dice: Any = SimpleNamespace(randrange=lambda most: 1)
        self.panel = Panel(WIRED, None, lambda: self.now_s, dice)
        self.pages = [Page("one"), Page("other")]
        for page in self.pages:
            self.panel.join(page)

    def wait(self, seconds: float) -> None:
        """Let time pass and run each due step. Asserts that the steps come to an end."""
        end_s = self.now_s + seconds
        for _ in range(2000):
            pause_s = self.panel.step()
            assert pause_s is None or pause_s >= 0.0
            if pause_s is None or self.now_s + pause_s > end_s:
                break
            self.now_s += max(pause_s, 1e-6)
        else:
            raise AssertionError("something is always due")
        self.now_s = max(self.now_s, end_s)

    def shown(self) -> None:
        """Assert that only LEDs and lights shine, at most at full duty."""
        assert self.panel._thread is not None
        for gpio, duty in self.panel._thread._duties.items():
            assert gpio in PINS and 0.0 <= duty <= 1.0


def buttons(data: bytes) -> None:
    """Lines of messages by two pages in turn, with contact edges between; the panel always
    becomes dark again."""
    room = Room()
    for number, line in enumerate(data.split(b"\n")[:30]):
        page = room.pages[number % 2]
        room.wait(line[-1] / 500 if line else 0.3)
        if line[:1] == EDGE:
            code = line[1] if len(line) > 1 else 0
            gpio = CONTACTS[code % len(CONTACTS)]
            room.panel._touch([Touch(gpio, code >= 0x80, room.now_s)])
        else:
            _said(room, page, line)
        room.shown()
    for page in room.pages:
        room.panel.leave(page)
    room.panel._begin(frozenset())
    room.wait(CHOOSE_S)
    room.panel.receive(room.pages[0], Choose("free"))
    room.panel.receive(room.pages[0], Hold(0))
    room.wait(1.0)
    assert room.panel.view.lit == 0 and room.panel.view.mode == "free"


def _said(room: Room, page: Page, line: bytes) -> None:
    try:
        message = parse_buttons_upward(line)
    except WireError as fault:
        assert fault.what and len(fault.value) <= 80 and fault.limit
        return
    assert parse_buttons_upward(msgspec.json.encode(message)) == message
    if isinstance(message, Hold | Choose):
        room.panel.receive(page, message)
