"""Which lights are on, and how bright: the car's own and those of the buttons. Pure."""

import math

from fpvcar.config import Lights

STEER_ON, STEER_OFF = 0.3, 0.15
"""Shares of full steering: a small correction is no turn."""
LINGER_S = 0.7
"""An indicator blinks once at least."""
HALF_S = 0.35
"""Half a blink: 86 times a minute, where road traffic has 60 to 120."""
HAZARD_S = 15.0
"""So long after a stop both sides blink; then everybody knows."""
CALL_S = 2.0
"""A code begins with a long light, so that nobody counts from its middle."""
BLINK_S, DIGIT_S = 0.3, 1.5
"""Of a digit's blinks, lit and dark; dark between two digits."""
ASKED_S, ASKED_OWN, ASKED_ALL = 600.0, 3, 6
"""How often pages may have the code told within that time: those of one network, and
those of all networks."""
FADING = ((0.0, 0.5), (0.04, 0.25), (0.08, 0.1), (0.12, 0.0))
"""(s after it went out, share of its brightness): few steps, each is a call."""


def levels(
    lights: Lights,
    head: bool,
    reversing: bool,
    sides: tuple[bool, bool] = (False, False),
    recorder: bool = False,
    code: bool = False,
) -> dict[int, int]:
    """The level of every light's pin. `sides`: the left and the right indicator."""
    left, right = sides
    return {
        **{gpio: int(head) for gpio in lights.head},
        **{gpio: int(reversing) for gpio in lights.rear},
        **{gpio: int(left) for gpio in lights.indicator_left},
        **{gpio: int(right) for gpio in lights.indicator_right},
        **{gpio: int(recorder) for gpio in lights.recorder},
        **{gpio: int(code) for gpio in lights.code},
    }


class RecorderLamp:
    """An LED: steady while the car records, blinking while it cannot, else dark."""

    def __init__(self) -> None:
        self.lit = False
        self.due_s = math.inf
        """When `tick` will change something."""
        self._last = (False, True)

    def follow(self, on: bool, works: bool, now_s: float) -> None:
        """What the recorder does now."""
        if (on, works) != self._last:
            self._last = (on, works)
            self.lit = on
            self.due_s = now_s + HALF_S if on and not works else math.inf

    def tick(self, now_s: float) -> None:
        """Time passes."""
        while self.due_s <= now_s:
            self.lit, self.due_s = not self.lit, self.due_s + HALF_S


def blinks(code: str) -> tuple[float, ...]:
    """When an LED changes, in s from now, that is dark and then tells digits: each by
    as many blinks as it counts, 0 by ten."""
    changes, now_s = [0.0, CALL_S], CALL_S + DIGIT_S
    for digit in code:
        for _ in range(int(digit) or 10):
            changes += [now_s, now_s + BLINK_S]
            now_s += 2 * BLINK_S
        now_s += DIGIT_S - BLINK_S
    return tuple(changes)


class CodeLamp:
    """An LED that blinks the drive code out, once for each request.

    Requests are limited, so that a stranger on the network cannot keep it blinking.
    """

    def __init__(self) -> None:
        self._begin_s = 0.0
        self._changes: tuple[float, ...] = ()
        self._done = 0
        self._asked: list[tuple[float, str]] = []

    def tell(self, code: str, now_s: float, network: str = "") -> None:
        """Start blinking the code for a page of this network.

        Ignored while it is blinking, and above ASKED_OWN or ASKED_ALL requests.
        """
        if self.due_s != math.inf:
            return
        self._asked = [one for one in self._asked if now_s - one[0] < ASKED_S]
        own = sum(one[1] == network for one in self._asked)
        if own < ASKED_OWN and len(self._asked) < ASKED_ALL:
            self._asked.append((now_s, network))
            self._begin_s, self._changes, self._done = now_s, blinks(code), 0

    def tick(self, now_s: float) -> None:
        """Time passes."""
        while self.due_s <= now_s:
            self._done += 1

    @property
    def lit(self) -> bool:
        """As of the last tick."""
        return bool(self._done % 2)

    @property
    def due_s(self) -> float:
        """When `tick` will change something."""
        if self._done == len(self._changes):
            return math.inf
        return self._begin_s + self._changes[self._done]


class Indicators:
    """Both indicators follow the steering; after a stop they blink in one beat."""

    def __init__(self) -> None:
        self._side = 0
        self._seen_s = -math.inf
        self._stopped = False
        self._hazard_until_s = -math.inf
        self._lit = False
        self.due_s = math.inf
        """When `tick` will change something."""

    def follow(self, steer: float, stopped: bool, now_s: float) -> None:
        """What the car does now; `steer` is -1..1, + is left."""
        if abs(steer) >= STEER_ON:
            self._side, self._seen_s = (1 if steer > 0.0 else -1), now_s
        elif abs(steer) < STEER_OFF and now_s >= self._seen_s + LINGER_S:
            self._side = 0
        if stopped != self._stopped:
            self._stopped = stopped
            self._hazard_until_s = now_s + HAZARD_S if stopped else -math.inf
        self.tick(now_s)

    def tick(self, now_s: float) -> None:
        """Time passes."""
        if not self._side and now_s >= self._hazard_until_s:
            self._lit, self.due_s = False, math.inf
        elif self.due_s == math.inf:
            self._lit, self.due_s = True, now_s + HALF_S
        while self.due_s <= now_s:
            self._lit, self.due_s = not self._lit, self.due_s + HALF_S

    def sides(self, now_s: float) -> tuple[bool, bool]:
        """Is the left one lit, is the right one? As of the last tick."""
        hazard = now_s < self._hazard_until_s
        left, right = hazard or self._side > 0, hazard or self._side < 0
        return (self._lit and left, self._lit and right)


class Fade:
    """One LED: bright at once, dark within FADING."""

    def __init__(self) -> None:
        self._lit = False
        self._out_s = -math.inf

    def turn(self, lit: bool, now_s: float) -> None:
        """Turns it on or off."""
        if self._lit and not lit:
            self._out_s = now_s
        self._lit = lit

    def share(self, now_s: float) -> float:
        """The share of full brightness, 0 to 1."""
        if self._lit:
            return 1.0
        passed = [share for after_s, share in FADING if self._out_s + after_s <= now_s]
        return passed[-1] if passed else 0.0

    def due_s(self, now_s: float) -> float:
        """When `share` changes by itself."""
        steps = (self._out_s + after_s for after_s, _ in FADING)
        coming = (at_s for at_s in steps if at_s > now_s)
        return math.inf if self._lit else min(coming, default=math.inf)
