"""Buttons that glow, the memory game; no clock, no pins."""

import math
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar.buttons.game import CAR, CHOOSE_S, GLOW_S, LONG_S, LONGEST, PATIENCE_S, Play
from fpvcar.wire.buttons import View

EPSILON_S = 1e-6
BUTTONS = 4


# --- free play ----------------------------------------------------------------


def playing(dice: Iterator[int] | None = None, count: int = BUTTONS) -> Play:
    pattern = dice or iter([0, 2, 1, 3] * 20)
    played: Any = SimpleNamespace(randrange=lambda most: next(pattern) % most)
    return Play(count, played)


def lit(play: Play, now_s: float) -> int:
    play.tick(now_s)
    return play.view.lit


@pytest.fixture
def play() -> Play:
    return playing()


def test_button_glows_while_held_and_at_least_glow_s(play: Play) -> None:
    play.hold("page", 0b0100, 1.0)
    assert play.view == View(lit=0b0100)
    assert lit(play, 30.0) == 0b0100
    play.hold("page", 0, 30.1)
    assert play.view.lit == 0
    play.hold("page", 0b0001, 31.0)
    play.hold("page", 0, 31.01)
    assert play.view.lit == 0b0001 and play.due_s == 31.0 + GLOW_S
    assert lit(play, play.due_s) == 0 and play.due_s == math.inf


def test_button_held_by_two_pages_glows_after_one_release(play: Play) -> None:
    play.hold("page 1", 0b1, 1.0)
    play.hold("page 2", 0b11, 1.1)
    play.hold("page 2", 0, 1.2)
    assert lit(play, 5.0) == 0b1


def test_bits_of_no_button_do_not_count() -> None:
    play = playing(count=4)
    play.hold("page", 0b110000, 1.0)
    assert play.view.lit == 0


taps = some.lists(some.tuples(some.floats(0.0, 0.2), some.booleans()), max_size=60)


@given(taps)
def test_light_flashes_at_most_four_times_a_second(taps: list[tuple[float, bool]]) -> None:
    play, now_s, changes = playing(), 100.0, [(0.0, 0)]

    def note(at_s: float) -> None:
        if play.view.lit != changes[-1][1]:
            changes.append((at_s, play.view.lit))

    for gap_s, down in taps:
        while play.due_s <= now_s + gap_s:
            due_s = play.due_s
            play.tick(due_s)
            note(due_s)
        now_s += gap_s
        play.hold("page", int(down), now_s)
        note(now_s)
    rises = [at_s for at_s, light in changes if light]
    assert all(two - one >= GLOW_S - EPSILON_S for one, two in pairwise(rises))


# --- rainbow, and the modes that the car's own buttons start --------------------


def test_rainbow_runs_through_the_buttons_until_a_push() -> None:
    play = playing(count=5)
    play.choose("rainbow", 0.0)
    seen = []
    for _ in range(12):
        seen.append(play.view.lit)
        assert play.view.mode == "rainbow"
        play.tick(play.due_s)
    assert seen == [1 << number % 5 for number in range(12)]
    play.hold("page", 0b10, 100.0)
    assert play.view == View(lit=0b10)
    play.hold("page", 0, 101.0)
    assert play.view == View() and play.due_s == math.inf


@pytest.mark.parametrize(
    ("held", "mode"), [(0b0001, "show"), (0b0110, "rainbow"), (0b0111, "free")]
)  # three buttons span a whole arm
def test_long_holds_on_the_car_start_and_end_modes(held: int, mode: str, play: Play) -> None:
    play.hold(CAR, held, 1.0)
    play.tick(1.0 + LONG_S - EPSILON_S)
    assert play.view.mode == "free"
    play.tick(1.0 + LONG_S)
    assert play.view.mode == mode
    play.tick(1.1 + 2 * LONG_S)
    assert (play.view.mode == "free") == (mode == "free"), "it ends what it began"


def test_lifted_finger_starts_no_mode(play: Play) -> None:
    play.hold(CAR, 0b0111, 1.0)
    play.hold(CAR, 0b0001, 1.5)
    play.tick(10.0)
    assert play.view.mode == "free"
    play.hold(CAR, 0, 10.0)
    play.hold(CAR, 0b0001, 10.1)
    play.hold(CAR, 0, 10.1 + LONG_S - EPSILON_S)
    play.tick(20.0)
    assert play.view.mode == "free"


def test_long_push_ends_the_game(play: Play) -> None:
    play.choose("game", 0.0)
    play.hold(CAR, 0b1, 0.1)
    play.tick(0.1 + LONG_S)
    assert play.view.mode == "free"


def test_long_hold_on_a_page_starts_no_mode(play: Play) -> None:
    play.hold("page", 0b1, 1.0)
    assert lit(play, 1000.0) == 0b1 and play.view.mode == "free"


# --- the memory game ----------------------------------------------------------


def watch(play: Play) -> list[int]:
    """Watch a show to its end; return the pattern as a child sees it. Each button is dark in
    between."""
    seen, before = [], 0
    assert play.view.mode == "show"
    while play.view.mode == "show":
        now = play.view.lit
        assert now.bit_count() <= 1
        if now and not before:
            seen.append(now.bit_length() - 1)
        before = now
        play.tick(play.due_s)
    assert play.view.lit == 0
    return seen


class Child:
    """Player that pushes like a child; time advances by itself."""

    def __init__(self, play: Play, now_s: float = 0.0) -> None:
        self.play, self.now_s = play, now_s
        play.choose("game", now_s)

    def watch(self) -> list[int]:
        while self.play.view.mode == "cheer":
            self.play.tick(self.play.due_s)
        seen = watch(self.play)
        self.now_s = self.play._now_s
        return seen

    def push(self, button: int) -> None:
        self.now_s += 0.3
        self.play.hold("child", 1 << button, self.now_s)
        self.now_s += 0.1
        self.play.hold("child", 0, self.now_s)


def all_dark(play: Play) -> None:
    """Run every due event; in the end no button is lit."""
    for _ in range(2000):
        if play.due_s == math.inf:
            break
        play.tick(play.due_s)
    assert play.view.lit == 0 and play.view.mode == "free"


@given(
    some.integers(4, 6),
    some.lists(some.integers(0, 1000), min_size=LONGEST, max_size=LONGEST),
    some.integers(0, LONGEST - 1),
    some.integers(0, 10_000),
)
def test_pattern_is_won_by_repeating_and_lost_by_a_wrong_push(
    count: int, dice: list[int], rounds: int, slip: int
) -> None:
    play = playing(iter(dice), count)
    child = Child(play, 50.0)
    for length in range(1, rounds + 1):
        pattern = child.watch()
        assert len(pattern) == length
        for number, button in enumerate(pattern):
            assert (play.view.mode, play.view.done) == ("turn", number)
            child.push(button)
        assert (play.view.mode, play.view.best) == ("cheer", length)
    pattern = child.watch()
    for button in pattern[: slip % len(pattern)]:
        child.push(button)
    child.push((pattern[slip % len(pattern)] + 1 + slip % (count - 1)) % count)
    assert (play.view.mode, play.view.best) == ("sad", rounds)
    all_dark(play)


def test_longest_pattern_ends_with_a_rainbow(play: Play) -> None:
    child = Child(play)
    for _ in range(LONGEST):
        for button in child.watch():
            child.push(button)
    while play.view.mode == "cheer":
        play.tick(play.due_s)
    assert (play.view.mode, play.view.best) == ("rainbow", LONGEST)
    all_dark(play)


def test_sad_end_blinks_the_right_button() -> None:
    play = playing(iter([2]))
    child = Child(play)
    assert child.watch() == [2]
    child.push(3)
    blinks = []
    while play.view.mode == "sad":
        blinks.append(play.view.lit)
        play.tick(play.due_s)
    assert blinks == [0, 0b100, 0, 0b100, 0, 0b100, 0]
    assert play.view == View(), "no record, no rainbow"


def test_record_shows_a_rainbow_and_is_kept() -> None:
    play, now_s = playing(), 0.0
    for rounds, party in ((2, True), (1, False), (3, True), (3, False)):
        child = Child(play, now_s)
        for _ in range(rounds):
            for button in child.watch():
                child.push(button)
        wrong = (child.watch()[0] + 1) % BUTTONS
        child.push(wrong)
        while play.view.mode == "sad":
            play.tick(play.due_s)
        assert play.view.mode == ("rainbow" if party else "free")
        all_dark(play)
        now_s = child.now_s + 20.0
    assert play.view.best == 3


def test_pushes_while_the_car_shows_do_not_count() -> None:
    play = playing(iter([1, 1]))
    child = Child(play)
    child.push(0)
    child.push(3)
    assert (play.view.mode, play.view.lit) == ("show", 0b10)
    assert child.watch() == [1]
    child.push(1)
    assert play.view.mode == "cheer"


def test_abandoned_game_ends_quietly(play: Play) -> None:
    child = Child(play)
    child.watch()
    play.tick(child.now_s + PATIENCE_S - EPSILON_S)
    assert play.view.mode == "turn"
    play.tick(child.now_s + PATIENCE_S)
    assert play.view == View() and play.due_s == math.inf


def test_several_players_share_one_game() -> None:
    """The first button is repeated by one player, the second by another, on the car."""
    play = playing(iter([0, 2]))
    child = Child(play)
    child.watch()
    play.hold(CAR, 0b1, child.now_s + 0.1)
    play.hold(CAR, 0, child.now_s + 0.2)
    child.watch()
    child.push(0)
    play.hold(CAR, 0b100, child.now_s + 0.1)
    assert (play.view.mode, play.view.best) == ("cheer", 2)


def test_choosing_free_ends_a_mode_after_choose_s(play: Play) -> None:
    for now_s, mode in ((0.0, "game"), (10.0, "rainbow")):
        play.choose(mode, now_s)
        assert play.view.mode != "free"
        play.choose("free", now_s + CHOOSE_S - EPSILON_S)
        assert play.view.mode != "free", "a second tap of an eager finger"
        play.choose("free", now_s + CHOOSE_S)
        assert play.view == View()


@given(
    some.lists(
        some.tuples(
            some.sampled_from(["game", "rainbow", "free", "a", CAR, "wait"]),
            some.integers(0, 63),
            some.floats(0.0, 20.0),
        ),
        max_size=40,
    )
)
def test_lights_end_dark_after_any_input_sequence(acts: list[tuple[str, int, float]]) -> None:
    play, now_s = playing(), 0.0
    for what, mask, after_s in acts:
        now_s += after_s
        if what == "wait":
            play.tick(now_s)
        elif what in ("game", "rainbow", "free"):
            play.choose(what, now_s)
        else:
            play.hold(what, mask, now_s)
        assert 0 <= play.view.lit < 1 << BUTTONS
        assert play.due_s > now_s
    play.hold("a", 0, now_s)
    play.hold(CAR, 0, now_s)
    play.choose("free", now_s + CHOOSE_S)
    all_dark(play)
