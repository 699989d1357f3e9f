"""State and brightness of the lights of car and buttons. Pure."""

import math

from fpvcar.config import Lights

STEER_ON, STEER_OFF = 0.3, 0.15
"""Shares of full steering; a small correction does not start an indicator."""
LINGER_S = 0.7
"""Minimum indicator time: at least one blink."""
HALF_S = 0.35
"""Half a blink: 86 per minute; road traffic uses 60 to 120."""
HAZARD_S = 15.0
"""Duration of the hazard lights after a stop."""
CALL_S = 2.0
"""Long light before a code, so that it is not read from its middle."""
BLINK_S, DIGIT_S = 0.3, 1.5
"""On and off time of a digit's blinks; pause between two digits."""
ASKED_S, ASKED_OWN, ASKED_ALL = 600.0, 3, 6
"""Limits of requests for the code within that time: per network, and in all."""
FADING = ((0.0, 0.5), (0.04, 0.25), (0.08, 0.1), (0.12, 0.0))
"""(seconds after switching off, share of brightness): few steps, each is a call."""


def levels(
    lights: Lights,
    head: bool,
    reversing: bool,
    sides: tuple[bool, bool] = (False, False),
    recorder: bool = False,
    code: bool = False,
) -> dict[int, int]:
    """Return the level of every light's pin. `sides`: left and right indicator."""
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
    """Recorder LED: steady while recording, blinking while recording fails, otherwise dark."""

    def __init__(self) -> None:
        self.lit = False
        self.due_s = math.inf
        """Time of the next change by `tick`."""
        self._last = (False, True)

    def follow(self, on: bool, works: bool, now_s: float) -> None:
        """Update the light from the recorder's state."""
        if (on, works) != self._last:
            self._last = (on, works)
            self.lit = on
            self.due_s = now_s + HALF_S if on and not works else math.inf

    def tick(self, now_s: float) -> None:
        """Advance the blinking to this time."""
        while self.due_s <= now_s:
            self.lit, self.due_s = not self.lit, self.due_s + HALF_S


def blinks(code: str) -> tuple[float, ...]:
    """Return the times, in s from now, at which a dark LED changes to blink the
    digits of a code; 0 is ten blinks."""
    changes, now_s = [0.0, CALL_S], CALL_S + DIGIT_S
    for digit in code:
        for _ in range(int(digit) or 10):
            changes += [now_s, now_s + BLINK_S]
            now_s += 2 * BLINK_S
        now_s += DIGIT_S - BLINK_S
    return tuple(changes)


class CodeLamp:
    """LED that blinks the drive code once per request.

    Requests are limited, so that a stranger on the network cannot keep it blinking.
    """

    def __init__(self) -> None:
        self._begin_s = 0.0
        self._changes: tuple[float, ...] = ()
        self._done = 0
        self._requests: list[tuple[float, str]] = []

    def blink(self, code: str, now_s: float, network: str = "") -> None:
        """Start blinking the code for a page of this network.

        Ignored while it is blinking, and above ASKED_OWN or ASKED_ALL requests.
        """
        if self.due_s != math.inf:
            return
        self._requests = [request for request in self._requests if now_s - request[0] < ASKED_S]
        from_network = sum(request[1] == network for request in self._requests)
        if from_network < ASKED_OWN and len(self._requests) < ASKED_ALL:
            self._requests.append((now_s, network))
            self._begin_s, self._changes, self._done = now_s, blinks(code), 0

    def tick(self, now_s: float) -> None:
        """Advance the blinking to this time."""
        while self.due_s <= now_s:
            self._done += 1

    @property
    def lit(self) -> bool:
        """Level as of the last tick."""
        return bool(self._done % 2)

    @property
    def due_s(self) -> float:
        """Time of the next change by `tick`."""
        if self._done == len(self._changes):
            return math.inf
        return self._begin_s + self._changes[self._done]


class Indicators:
    """Both indicators: they follow the steering, and blink together after a stop."""

    def __init__(self) -> None:
        self._side = 0
        self._seen_s = -math.inf
        self._stopped = False
        self._hazard_until_s = -math.inf
        self._lit = False
        self.due_s = math.inf
        """Time of the next change by `tick`."""

    def follow(self, steer: float, stopped: bool, now_s: float) -> None:
        """Follow the car; `steer` is -1..1, positive is left."""
        if abs(steer) >= STEER_ON:
            self._side, self._seen_s = (1 if steer > 0.0 else -1), now_s
        elif abs(steer) < STEER_OFF and now_s >= self._seen_s + LINGER_S:
            self._side = 0
        if stopped != self._stopped:
            self._stopped = stopped
            self._hazard_until_s = now_s + HAZARD_S if stopped else -math.inf
        self.tick(now_s)

    def tick(self, now_s: float) -> None:
        """Advance the blinking to this time."""
        if not self._side and now_s >= self._hazard_until_s:
            self._lit, self.due_s = False, math.inf
        elif self.due_s == math.inf:
            self._lit, self.due_s = True, now_s + HALF_S
        while self.due_s <= now_s:
            self._lit, self.due_s = not self._lit, self.due_s + HALF_S

    def sides(self, now_s: float) -> tuple[bool, bool]:
        """Return the levels of the left and right indicator as of the last tick."""
        hazard = now_s < self._hazard_until_s
        left, right = hazard or self._side > 0, hazard or self._side < 0
        return (self._lit and left, self._lit and right)


class Fade:
    """LED that lights up at once and fades out over FADING."""

    def __init__(self) -> None:
        self._lit = False
        self._out_s = -math.inf

    def turn(self, lit: bool, now_s: float) -> None:
        if self._lit and not lit:
            self._out_s = now_s
        self._lit = lit

    def share(self, now_s: float) -> float:
        """Return the share of full brightness, 0 to 1."""
        if self._lit:
            return 1.0
        passed = [share for after_s, share in FADING if self._out_s + after_s <= now_s]
        return passed[-1] if passed else 0.0

    def due_s(self, now_s: float) -> float:
        """Return the time at which `share` changes by itself."""
        steps = (self._out_s + after_s for after_s, _ in FADING)
        coming = (at_s for at_s in steps if at_s > now_s)
        return math.inf if self._lit else min(coming, default=math.inf)
