"""Button panel alone: pages, contacts and lights in step. Time by hand, no pins."""

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from fpvcar import config
from fpvcar.buttons.contacts import UP_S
from fpvcar.buttons.game import CHOOSE_S, GLOW_S, LONG_S
from fpvcar.buttons.lights import CALL_S, HALF_S
from fpvcar.buttons.panel import RESEND_S, Panel
from fpvcar.buttons.thread import TICKS, ButtonsThread, Touch, touches
from fpvcar.config import profiles
from fpvcar.devices.pins import Edge
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.wire.buttons import Choose, Hold
from fpvcar.wire.telemetry import Recording

BENCH = paths.HARDWARE / "bench.toml"
WIRED = profiles.load(BENCH)
BARE = profiles.load(BENCH, ["buttons = {}", "lights = {}"])
RED, YELLOW, GREEN, BLUE = WIRED.buttons.values()


@dataclass
class Page:
    """Page that keeps its received messages."""

    source: str
    heard: list[dict[str, Any]] = field(default_factory=list)

    def send_newest(self, text: str) -> None:
        self.heard.append(json.loads(text))

    @property
    def lit(self) -> int:
        lit: int = self.heard[-1]["lit"]
        return lit


class Room:
    """Panel whose clock stands still."""

    def __init__(self, profile: config.Profile = BARE) -> None:
        self.now_s = 100.0
        dice: Any = SimpleNamespace(randrange=lambda most: 0)
        self.panel = Panel(profile, None, lambda: self.now_s, dice, code="204816")
        self.panel.step()

    def page(self, source: str) -> Page:
        page = Page(source)
        self.panel.join(page)
        return page

    def hold(self, page: Page, held: int) -> None:
        self.panel.receive(page, Hold(held))
        self.panel.step()

    def wait(self, seconds: float) -> None:
        """Run each due event at its time."""
        end_s = self.now_s + seconds
        while (pause_s := self.panel.step()) is not None:
            if self.now_s + pause_s > end_s:
                break
            self.now_s += max(pause_s, 1e-6)
        self.now_s = end_s
        self.panel.step()

    @property
    def duties(self) -> dict[int, float]:
        """Return the duties that the pins are set to."""
        assert isinstance(self.panel._thread, ButtonsThread)
        return dict(self.panel._thread._duties)

    def touch(self, button: config.Button, closed: bool) -> None:
        assert button.button is not None
        self.panel._touch([Touch(button.button, closed, self.now_s)])
        self.panel.step()

    def bright(self, button: config.Button) -> float:
        assert button.led is not None
        return self.duties[button.led]


# --- pages --------------------------------------------------------------------


def test_button_held_on_one_page_is_lit_on_all_pages() -> None:
    room = Room()
    one, other = room.page("one"), room.page("other")
    room.hold(one, 0b10)
    assert one.lit == other.lit == 0b10
    assert one.heard[-1] == other.heard[-1]
    room.now_s += GLOW_S
    room.hold(one, 0)
    assert other.lit == 0


def test_later_page_sees_the_lit_buttons() -> None:
    room = Room()
    room.hold(room.page("one"), 0b100)
    assert room.page("late").lit == 0b100


def test_page_that_left_holds_no_button() -> None:
    room = Room()
    one, other = room.page("one"), room.page("other")
    room.hold(one, 0b1)
    room.panel.leave(one)
    room.wait(GLOW_S)
    assert other.lit == 0
    before = len(one.heard)
    room.hold(other, 0b1)
    assert len(one.heard) == before
    room.panel.leave(one)  # leaving twice is no fault


def test_pages_hear_twice_a_second_that_the_car_is_there() -> None:
    room = Room()
    page = room.page("one")
    before = len(page.heard)
    room.wait(10 * RESEND_S)
    assert 9 <= len(page.heard) - before <= 11
    room.panel.leave(page)
    assert room.panel.step() is None, "with nobody there it sleeps"


def test_rapid_pushes_make_few_messages_and_the_last_is_sent() -> None:
    room = Room()
    pages = [room.page(f"page {number}") for number in range(6)]
    eyes = room.page("eyes")
    before = len(eyes.heard)
    modes: tuple[Literal["game", "rainbow", "free"], ...] = ("game", "rainbow", "free")
    for number in range(1000):
        room.hold(pages[number % 6], (number * 7) % 16)
        room.panel.receive(pages[number % 6], Choose(modes[number % 3]))
        room.wait(0.001)
    assert len(eyes.heard) - before <= 32
    for page in pages:
        room.hold(page, 0)
    room.wait(CHOOSE_S)
    room.panel.receive(eyes, Choose("free"))
    room.hold(pages[0], 0b1000)
    assert eyes.lit == 0b1000


def test_choose_messages_start_rainbow_and_game() -> None:
    room = Room()
    page = room.page("one")
    room.panel.receive(page, Choose("rainbow"))
    room.panel.step()
    assert page.heard[-1]["mode"] == "rainbow"
    room.now_s += CHOOSE_S
    room.panel.receive(page, Choose("game"))
    room.wait(5.0)
    assert page.heard[-1]["mode"] == "turn" and page.heard[-1]["length"] == 1
    room.hold(page, 0b1)
    assert page.heard[-1]["mode"] == "cheer" and page.heard[-1]["best"] == 1


def test_car_without_buttons_has_four_on_its_pages() -> None:
    panel = Room().panel
    looks = panel.welcome("Plague").buttons
    assert [(one.colour, one.shape) for one in looks] == [
        ("red", "circle"),
        ("yellow", "triangle"),
        ("green", "square"),
        ("blue", "star"),
    ]
    assert panel.state == "ok"


# --- contacts and LEDs --------------------------------------------------------


@pytest.fixture
def room() -> Room:
    return Room(WIRED)


def test_push_on_the_car_lights_its_led_and_all_pages(room: Room) -> None:
    page = room.page("one")
    room.touch(GREEN, True)
    assert page.lit == 0b100 and room.bright(GREEN) == 1.0
    room.now_s += 1.0
    room.touch(GREEN, False)
    assert page.lit == 0b100, "it may be bouncing"
    room.wait(UP_S)
    assert page.lit == 0 and 0.0 < room.bright(GREEN) < 1.0
    room.wait(1.0)
    assert not any(room.duties.values())


def test_push_is_shown_at_once_and_its_end_wakes_the_loop(room: Room) -> None:
    page = room.page("one")
    panel = room.panel
    panel.step()
    panel._up_s = panel._due_s  # `run` sleeps until then
    panel._wake.clear()
    assert GREEN.button is not None
    panel._touch([Touch(GREEN.button, True, room.now_s)])
    assert page.lit == 0b100 and room.bright(GREEN) == 1.0
    assert panel._wake.is_set(), "the end of its glow comes sooner"
    panel._up_s = panel._due_s
    panel._wake.clear()
    panel.receive(page, Hold(0b100))
    assert not panel._wake.is_set(), "nothing new is due: nobody is woken"


def test_push_on_a_page_lights_the_led_at_profile_brightness(room: Room) -> None:
    room.hold(room.page("one"), 0b1001)
    assert room.bright(RED) == 1.0 and room.bright(BLUE) == 0.8
    assert room.bright(YELLOW) == 0.0


def test_push_and_release_in_one_report_count(room: Room) -> None:
    page = room.page("one")
    room.panel.receive(page, Choose("game"))
    room.wait(5.0)  # the pattern is: red
    gpio = RED.button
    assert gpio is not None
    room.panel._touch([Touch(gpio, True, room.now_s), Touch(gpio, False, room.now_s + 0.001)])
    room.panel.step()
    assert page.heard[-1]["mode"] == "cheer"
    room.wait(5.0)  # red, red
    at_s = room.now_s
    room.panel._touch(
        [Touch(gpio, True, at_s), Touch(gpio, False, at_s + 0.01), Touch(gpio, True, at_s + 0.05)]
    )
    room.panel.step()
    assert page.heard[-1]["best"] == 2, "two pushes in one report"


def test_stuck_contact_starts_no_mode(room: Room) -> None:
    assert RED.button is not None
    room.panel._begin(frozenset({RED.button}))
    room.wait(2 * LONG_S)
    assert not any(room.duties.values())
    room.touch(YELLOW, True)
    assert room.bright(YELLOW) == 1.0 and room.bright(RED) == 0.0
    room.touch(RED, False)
    room.touch(RED, True)  # the contact bounces
    assert room.bright(RED) == 0.0


def test_lost_pins_release_held_buttons(room: Room) -> None:
    room.touch(RED, True)
    room.panel._begin(frozenset())
    room.wait(1.0)
    assert room.bright(RED) == 0.0


def test_edges_are_dated_by_the_daemon_whose_clock_wraps() -> None:
    edges = [Edge(TICKS - 500, 7, 0), Edge(1500, 7, 1), Edge(2500, 8, 0)]
    found = touches(edges, 9.0)
    assert [(gpio, closed, round(at_s, 6)) for gpio, closed, at_s in found] == [
        (7, True, 8.997),
        (7, False, 8.999),
        (8, True, 9.0),
    ]
    assert touches([], 9.0) == []


def test_leds_lighting_up_are_written_before_fading_ones() -> None:
    said: list[tuple[int, float]] = []

    class Daemon:
        def write(self, gpio: int, level: int) -> None:
            said.append((gpio, level))

        def pwm(self, gpio: int, duty: float) -> None:
            said.append((gpio, duty))

    thread = ButtonsThread(WIRED, [], [])
    shown = {18: 1.0, 19: 0.25, 22: 0.0, 25: 0.0}
    wanted = {18: 0.5, 19: 0.0, 22: 1.0, 25: 0.0}
    thread._show(Daemon(), shown, wanted)  # type: ignore[arg-type]
    assert said == [(22, 1), (19, 0), (18, 0.5)]
    assert shown == wanted


async def test_lost_pins_release_the_contacts() -> None:
    room = Room(WIRED)
    page, thread = room.page("one"), room.panel._thread
    assert thread is not None
    thread._loop = asyncio.get_running_loop()
    room.touch(RED, True)
    room.wait(GLOW_S + UP_S)
    assert page.lit == 0b1, "held"
    thread.lost()
    await asyncio.sleep(0.0)
    room.wait(GLOW_S)
    assert page.lit == 0


# --- the car's lights ---------------------------------------------------------


def lamps(room: Room) -> tuple[float, ...]:
    """Return the duties of head, rear, left and right lights."""
    pins = (WIRED.lights.head, WIRED.lights.rear)
    sides = (WIRED.lights.indicator_left, WIRED.lights.indicator_right)
    return tuple(room.duties[gpios[0]] for gpios in (*pins, *sides))


def test_lights_are_off_at_first_and_follow(room: Room) -> None:
    assert lamps(room) == (0, 0, 0, 0)
    room.panel.set_head(True)
    room.panel.follow(-0.5, 0.0, False)
    room.panel.step()
    assert lamps(room) == (1, 1, 0, 0)
    room.panel.set_head(False)
    room.panel.follow(0.5, 1.0, False)
    room.panel.step()
    assert lamps(room) == (0, 0, 1, 0)
    room.wait(HALF_S)
    assert lamps(room) == (0, 0, 0, 0)


def test_stopped_car_blinks_on_both_sides(room: Room) -> None:
    room.panel.follow(0.0, 0.0, True)
    room.panel.step()
    assert lamps(room) == (0, 0, 1, 1)
    room.panel.follow(0.0, 0.0, False)
    room.panel.step()
    assert lamps(room) == (0, 0, 0, 0)


def test_recorder_led_is_steady_and_blinks_on_a_fault() -> None:
    gpio = WIRED.lights.recorder[0]
    room = Room(WIRED)
    assert room.duties[gpio] == 0
    room.panel._wake.clear()
    room.panel.record(Recording(True, "ok", 1.0))
    assert room.panel._wake.is_set()
    room.wait(5.0)
    assert room.duties[gpio] == 1
    full = Recording(True, Text("card_full", "the card is full"), 1.0)
    room.panel.record(full)
    lit = []
    for _ in range(4):
        room.wait(HALF_S)
        lit.append(room.duties[gpio])
    assert lit == [0, 1, 0, 1]
    room.panel._wake.clear()
    room.panel.record(full)
    assert not room.panel._wake.is_set(), "it is told ten times a second"


def test_code_led_blinks_the_code_on_request() -> None:
    gpio = WIRED.lights.code[0]
    room = Room(WIRED)
    room.panel._wake.clear()
    assert room.duties[gpio] == 0
    room.panel.blink_code()
    assert room.panel._wake.is_set()
    room.wait(CALL_S / 2)
    assert room.duties[gpio] == 1, "a long light calls"
    lit, flashes = True, 0
    while (pause_s := room.panel.step()) is not None:
        room.now_s += pause_s
        room.panel.step()
        flashes += not lit and room.duties[gpio] == 1
        lit = room.duties[gpio] == 1
    assert flashes == 2 + 10 + 4 + 8 + 1 + 6 and not lit


def test_car_without_a_code_led_ignores_the_request() -> None:
    room = Room()
    room.panel._wake.clear()
    room.panel.blink_code()
    assert not room.panel._wake.is_set() and room.panel.step() is None


def test_driving_straight_does_not_wake_the_loop(room: Room) -> None:
    room.panel._wake.clear()
    for _ in range(50):
        room.panel.follow(0.7, 0.0, False)
    assert not room.panel._wake.is_set()
