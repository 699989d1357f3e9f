"""Lights that are on or blink, and the fading of an LED. No clock, no pins."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar.buttons import lights
from fpvcar.buttons.lights import (
    ASKED_ALL,
    ASKED_OWN,
    ASKED_S,
    BLINK_S,
    CALL_S,
    DIGIT_S,
    FADING,
    HALF_S,
    HAZARD_S,
    LINGER_S,
    CodeLamp,
    Fade,
    Indicators,
    RecorderLamp,
)
from fpvcar.config import Lights

CAR = Lights(head=(5, 6), rear=(13,), indicator_left=(26,), indicator_right=(9, 10))
NONE, LEFT, RIGHT, BOTH = (False, False), (True, False), (False, True), (True, True)


@pytest.mark.parametrize(
    ("lamps", "states", "lit"),
    [
        (CAR, (False, False, NONE), ()),
        (CAR, (True, False, NONE), (5, 6)),
        (CAR, (False, True, NONE), (13,)),
        (CAR, (False, False, LEFT), (26,)),
        (CAR, (False, False, RIGHT), (9, 10)),
        (Lights(head=(5,), recorder=(15,)), (False, False, NONE, False), ()),
        (Lights(head=(5,), recorder=(15,)), (False, False, NONE, True), (15,)),
        (Lights(head=(5,), code=(14,)), (False, False), ()),
        (Lights(head=(5,), code=(14,)), (False, False, NONE, False, True), (14,)),
        (Lights(), (True, True, BOTH), ()),
    ],
)
def test_each_light_sets_its_own_pins(lamps: Lights, states: Any, lit: tuple[int, ...]) -> None:
    gpios = [gpio for group in msgspec.structs.astuple(lamps) for gpio in group]
    assert lights.levels(lamps, *states) == {gpio: int(gpio in lit) for gpio in gpios}


def test_recorder_lamp_is_steady_blinks_or_is_dark() -> None:
    lamp = RecorderLamp()
    assert not lamp.lit and lamp.due_s == math.inf
    lamp.follow(True, True, 1.0)
    lamp.tick(9.0)
    assert lamp.lit and lamp.due_s == math.inf
    lamp.follow(True, False, 10.0)
    seen = []
    for _ in range(4):
        lamp.follow(True, False, lamp.due_s)  # an unchanged state changes no beat
        seen.append((lamp.lit, lamp.due_s))
        lamp.tick(lamp.due_s)
    assert [lit for lit, _ in seen] == [True, False, True, False]
    assert seen[3][1] == pytest.approx(10.0 + 4 * HALF_S)
    lamp.follow(False, False, 12.0)
    assert not lamp.lit and lamp.due_s == math.inf, "nobody wants it to record"


def told(code: str) -> list[int]:
    """Count blinks between long pauses, the first long light apart."""
    lamp, counted = CodeLamp(), [0]
    lamp.blink(code, 10.0)
    lit_s = dark_s = -math.inf
    while (now_s := lamp.due_s) < math.inf:
        was = lamp.lit
        lamp.tick(now_s)
        assert lamp.lit is not was
        if lamp.lit:
            if now_s - dark_s >= DIGIT_S - 1e-9:
                counted.append(0)
            lit_s = now_s
        else:
            dark_s = now_s
            if now_s - lit_s < CALL_S - 1e-9:
                assert now_s - lit_s == pytest.approx(BLINK_S)
                counted[-1] += 1
    assert not lamp.lit
    return [count for count in counted if count]


@given(some.from_regex(r"[0-9]{6}", fullmatch=True))
def test_code_lamp_blinks_spell_the_code(code: str) -> None:
    assert told(code) == [int(digit) or 10 for digit in code]


def test_code_takes_less_than_a_minute() -> None:
    assert lights.blinks("000000")[-1] < 60.0


def test_code_lamp_tells_once_per_request() -> None:
    lamp = CodeLamp()
    assert not lamp.lit and lamp.due_s == math.inf
    lamp.blink("1", 0.0)
    lamp.tick(0.0)
    assert lamp.lit and lamp.due_s == CALL_S
    lamp.blink("9", 0.5)
    assert lamp.due_s == CALL_S, "who asks meanwhile changes nothing"
    lamp.tick(CALL_S + DIGIT_S)
    assert lamp.lit and lamp.due_s == pytest.approx(CALL_S + DIGIT_S + BLINK_S)
    lamp.tick(60.0)
    assert not lamp.lit and lamp.due_s == math.inf
    lamp.blink("2", 61.0)
    lamp.tick(61.0)
    assert lamp.lit


def times_told(networks: list[str], every_s: float) -> int:
    """Count the times the code is blinked if these networks ask one after the other."""
    lamp, told = CodeLamp(), 0
    for number, network in enumerate(networks):
        now_s = number * every_s
        lamp.tick(now_s)
        before = lamp.due_s
        lamp.blink("1", now_s, network)
        told += before == math.inf and lamp.due_s != math.inf
    return told


def test_code_lamp_limits_repeated_requests() -> None:
    assert times_told(["a"] * 300, 1.0) == ASKED_OWN, "one page asks for five minutes"
    strangers = [str(number) for number in range(300)]
    assert times_told(strangers, 1.0) == ASKED_ALL
    assert times_told(["a"] * 6, ASKED_S / 3) == 6, "now and then it is told"
    assert times_told(["a"] * ASKED_OWN + ["b"], 60.0) == ASKED_OWN + 1


def seen(indicators: Indicators, from_s: float, to_s: float) -> list[tuple[bool, bool]]:
    """Return the lights at each change, without any input."""
    indicators.tick(from_s)
    found, now_s = [indicators.sides(from_s)], from_s
    while (now_s := indicators.due_s) <= to_s:
        indicators.tick(now_s)
        if indicators.sides(now_s) != found[-1]:
            found.append(indicators.sides(now_s))
    return found


@pytest.mark.parametrize(("steer", "side"), [(1.0, LEFT), (0.3, LEFT), (-0.5, RIGHT)])
def test_indicators_blink_on_the_steered_side(steer: float, side: tuple[bool, bool]) -> None:
    indicators = Indicators()
    indicators.follow(steer, False, 10.0)
    assert seen(indicators, 10.0, 10.0 + 4 * HALF_S) == [side, NONE, side, NONE, side]


def test_small_correction_is_no_turn() -> None:
    indicators = Indicators()
    indicators.follow(0.29, False, 1.0)
    assert indicators.sides(1.0) == NONE and indicators.due_s == math.inf


def test_turn_blinks_at_least_once_and_until_straight() -> None:
    indicators = Indicators()
    indicators.follow(1.0, False, 0.0)
    indicators.follow(0.0, False, 0.1)
    assert indicators.sides(0.1) == LEFT
    indicators.follow(0.0, False, LINGER_S)
    assert indicators.sides(LINGER_S) == NONE and indicators.due_s == math.inf
    indicators.follow(1.0, False, 5.0)
    indicators.follow(0.2, False, 9.0)
    assert indicators.due_s < math.inf, "not straight enough to be over"
    indicators.follow(0.1, False, 9.1)
    assert indicators.due_s == math.inf


def test_both_indicators_blink_for_a_while_after_a_stop() -> None:
    indicators = Indicators()
    indicators.follow(0.0, True, 1.0)
    states = seen(indicators, 1.0, 1.0 + HAZARD_S + 1.0)
    assert set(states) == {BOTH, NONE} and states[-1] == NONE
    assert len(states) == pytest.approx(HAZARD_S / HALF_S, abs=2)
    assert indicators.due_s == math.inf
    indicators.follow(0.0, False, 60.0)
    indicators.follow(0.0, True, 61.0)
    assert indicators.sides(61.0) == BOTH, "the next stop is another one"
    indicators.follow(0.0, False, 62.0)
    assert indicators.sides(62.0) == NONE, "it goes on"


def test_indicators_blink_in_step() -> None:
    indicators = Indicators()
    indicators.follow(1.0, False, 0.0)
    indicators.follow(1.0, True, 0.2)
    assert seen(indicators, 0.2, 3 * HALF_S) == [BOTH, NONE, BOTH, NONE]


@given(
    some.lists(
        some.tuples(some.floats(0.0, 2.0), some.floats(-1.0, 1.0), some.booleans()), max_size=40
    )
)
def test_indicator_is_lit_for_at_most_half_a_beat(acts: list[tuple[float, float, bool]]) -> None:
    indicators, now_s, lit_s = Indicators(), 0.0, {0: -1.0, 1: -1.0}
    for after_s, steer, stopped in acts:
        end_s = now_s + after_s
        while indicators.due_s <= end_s:
            now_s = indicators.due_s
            indicators.tick(now_s)
            _note(indicators, now_s, lit_s)
        now_s = end_s
        indicators.follow(steer, stopped, now_s)
        _note(indicators, now_s, lit_s)


def _note(indicators: Indicators, now_s: float, lit_s: dict[int, float]) -> None:
    for side, lit in enumerate(indicators.sides(now_s)):
        if not lit:
            lit_s[side] = -1.0
        elif lit_s[side] < 0.0:
            lit_s[side] = now_s
        else:
            assert now_s - lit_s[side] <= HALF_S + 1e-9


def test_led_is_bright_at_once_and_fades_in_steps() -> None:
    fade = Fade()
    assert fade.share(0.0) == 0.0 and fade.due_s(0.0) == math.inf
    fade.turn(True, 1.0)
    assert fade.share(1.0) == 1.0 and fade.due_s(1.0) == math.inf
    fade.turn(False, 2.0)
    steps, now_s = [fade.share(2.0)], 2.0
    while (now_s := fade.due_s(now_s)) < math.inf:
        steps.append(fade.share(now_s))
    assert steps == [share for _, share in FADING] and steps[-1] == 0.0
    fade.turn(False, 3.0)
    assert fade.share(3.0) == 0.0, "it goes out once"


def test_led_lit_again_while_fading_is_bright_at_once() -> None:
    fade = Fade()
    fade.turn(True, 1.0)
    fade.turn(False, 2.0)
    fade.turn(True, 2.05)
    assert fade.share(2.05) == 1.0 and fade.due_s(2.05) == math.inf
