"""The children's buttons: what is lit, the rainbow, the memory game. Pure.

    the car's contacts --+
                         +-> Play.hold -> pushes -> what is lit, and the mode
    pages' fingers ------+

Every time is an argument. States hold the times at which something will be due, so
that it does not matter how often, or how late, somebody looks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

GLOW_S = 0.25
"""A push is seen for so long at least; nothing flashes faster than 4 times a second."""
LONG_S = 2.0
"""One button of the car held for so long starts the game, two the rainbow."""
CHOOSE_S = 0.6
"""Choices count no sooner: whoever taps without end makes no strobe of them."""
RAINBOW_STEP_S = 0.2
PARTY_S = 3.2
"""How long the rainbow celebrates a record: some whole rounds."""
PATIENCE_S = 10.0
"""After so long without a push the game has been left."""
LONGEST = 32
"""A pattern that nobody is asked to beat."""
LEAD_S, GAP_S = 0.6, 0.2
SHOW_S, SHOW_LEAST_S, FASTER_S = 0.55, 0.25, 0.03
"""How long one step of a pattern is shown; the more there are the shorter."""
CAR = "car"
"""Who holds the buttons that are wired to the car."""


@dataclass(frozen=True)
class Free:
    """A button glows while somebody holds it."""


@dataclass(frozen=True)
class Turn:
    """Somebody repeats the pattern; `done` of it is right so far."""

    pattern: tuple[int, ...]
    done: int
    until_s: float


@dataclass(frozen=True)
class Scene:
    """The car plays. `beats`: (from when on, what is lit), in order, until `end_s`."""

    mode: str
    beats: tuple[tuple[float, int], ...]
    end_s: float
    pattern: tuple[int, ...] = ()
    done: int = 0
    until_s: float = math.inf
    """Until when the rainbow goes round."""

    def lit(self, now_s: float) -> int:
        """Bits of the buttons that are lit now."""
        return next((lit for at_s, lit in reversed(self.beats) if at_s <= now_s), 0)

    def next_s(self, now_s: float) -> float:
        """When something else will be lit, or it ends."""
        return next((at_s for at_s, _ in self.beats if at_s > now_s), self.end_s)


@dataclass(frozen=True)
class View:
    """What everybody sees. `lit` is a bit a button.

    `mode`: "free", "rainbow", or of the game "show", "turn", "cheer", "sad". `length`
    is the pattern's, `done` how much of it is repeated, `best` the longest one so far.
    """

    lit: int = 0
    mode: str = "free"
    length: int = 0
    done: int = 0
    best: int = 0


class Play:
    """What `count` buttons do together, whoever pushes them. `dice(n)` gives 0..n-1."""

    def __init__(self, count: int, dice: Callable[[int], int]) -> None:
        self._count, self._dice = count, dice
        self._all = (1 << count) - 1
        self._state: Free | Turn | Scene = Free()
        self._held: dict[str, int] = {}
        self._glow_until_s = [-math.inf] * count
        self._long_s, self._chosen_s = math.inf, -math.inf
        self._best, self._beaten = 0, False
        self._now_s = -math.inf

    # --- what people do ---

    def hold(self, source: str, held: int, now_s: float) -> None:
        """What somebody holds down from now on; what is new among it is pushed."""
        self.tick(now_s)
        held &= self._all
        before = self._held.pop(source, 0)
        if held:
            self._held[source] = held
        if source == CAR and held != before:
            more = held & ~before and held.bit_count() <= 2
            self._long_s = self._now_s + LONG_S if more else math.inf
        for button in range(self._count):
            if (held & ~before) >> button & 1:
                self._push(button)

    def choose(self, mode: str, now_s: float) -> None:
        """A picture on a page: "game", "rainbow", or "free"."""
        self.tick(now_s)
        if self._now_s >= self._chosen_s + CHOOSE_S:
            self._chosen_s = self._now_s
            self._begin(mode)

    def _begin(self, mode: str) -> None:
        if mode == "game":
            self._beaten = False
            self._state = self._show(())
        elif mode == "rainbow":
            self._state = self._rainbow(math.inf)
        else:
            self._state = Free()

    def _push(self, button: int) -> None:
        state = self._state
        if isinstance(state, Scene) and state.mode != "rainbow":
            return  # it is the car's turn
        self._glow_until_s[button] = self._now_s + GLOW_S
        if isinstance(state, Turn):
            self._state = self._answer(state, button)
        else:
            self._state = Free()

    def _answer(self, turn: Turn, button: int) -> Turn | Scene:
        right, done = turn.pattern[turn.done], turn.done + 1
        if button != right:
            return self._sad(turn, right)
        if done < len(turn.pattern):
            return Turn(turn.pattern, done, self._now_s + PATIENCE_S)
        return self._cheer(turn.pattern)

    # --- what the car plays ---

    def _scene(
        self, mode: str, beats: tuple[tuple[float, int], ...], length_s: float,
        pattern: tuple[int, ...] = (), done: int = 0,
    ) -> Scene:  # fmt: skip
        start_s = self._now_s
        timed = tuple((start_s + after_s, lit) for after_s, lit in beats)
        return Scene(mode, timed, start_s + length_s, pattern, done)

    def _show(self, pattern: tuple[int, ...]) -> Scene:
        """A pattern that is one longer."""
        pattern = (*pattern, self._dice(self._count))
        on_s = max(SHOW_LEAST_S, SHOW_S - FASTER_S * len(pattern))
        beats, at_s = [(0.0, 0)], LEAD_S
        for button in pattern:
            beats += [(at_s, 1 << button), (at_s + on_s, 0)]
            at_s += on_s + GAP_S
        return self._scene("show", tuple(beats), at_s, pattern)

    def _cheer(self, pattern: tuple[int, ...]) -> Scene:
        self._beaten |= len(pattern) > self._best
        self._best = max(self._best, len(pattern))
        last = 1 << pattern[-1]
        beats = ((0.0, last), (0.3, 0), (0.45, self._all), (0.75, 0))
        return self._scene("cheer", beats, 1.2, pattern, len(pattern))

    def _sad(self, turn: Turn, right: int) -> Scene:
        """The one that would have been right blinks, three times."""
        lit = 1 << right
        beats = [(0.3 * half, lit if half % 2 else 0) for half in range(7)]
        return self._scene("sad", tuple(beats), 2.2, turn.pattern, turn.done)

    def _rainbow(self, until_s: float) -> Scene:
        """One round; it begins again until `until_s`."""
        beats = tuple(
            (number * RAINBOW_STEP_S, 1 << number) for number in range(self._count)
        )
        scene = self._scene("rainbow", beats, self._count * RAINBOW_STEP_S)
        return replace(scene, until_s=until_s)

    # --- time ---

    def tick(self, now_s: float) -> None:
        """Does what was due until now, in its order."""
        while (due_s := min(self._long_s, self._end_s())) <= now_s:
            self._now_s = max(self._now_s, due_s)
            if due_s == self._long_s:
                self._long()
            else:
                self._state = self._after()
        self._now_s = max(self._now_s, now_s)

    def _end_s(self) -> float:
        state = self._state
        if isinstance(state, Free):
            return math.inf
        return state.until_s if isinstance(state, Turn) else state.end_s

    def _long(self) -> None:
        """Buttons of the car were held for long: something begins, or ends."""
        self._long_s = math.inf
        if not isinstance(self._state, Free):
            self._state = Free()
        else:
            two = self._held.get(CAR, 0).bit_count() == 2
            self._begin("rainbow" if two else "game")

    def _after(self) -> Free | Turn | Scene:
        """What follows a turn that nobody took, or a scene that is over."""
        state = self._state
        if not isinstance(state, Scene):
            return Free()
        if state.mode == "show":
            return Turn(state.pattern, 0, self._now_s + PATIENCE_S)
        if state.mode == "cheer" and len(state.pattern) < LONGEST:
            return self._show(state.pattern)
        if state.mode == "rainbow":
            goes_on, until_s = state.until_s > self._now_s, state.until_s
        else:  # the game is over
            goes_on, until_s = self._beaten, self._now_s + PARTY_S
        return self._rainbow(until_s) if goes_on else Free()

    @property
    def due_s(self) -> float:
        """When `view` changes by itself."""
        state = self._state
        if isinstance(state, Scene):
            return min(self._long_s, state.next_s(self._now_s))
        glows = [until_s for until_s in self._glow_until_s if until_s > self._now_s]
        return min(self._long_s, self._end_s(), *glows)

    @property
    def view(self) -> View:
        """What everybody sees since the last tick."""
        state = self._state
        if isinstance(state, Free):
            return View(self._glow(), best=self._best)
        if isinstance(state, Turn):
            lit, mode = self._glow(), "turn"
        else:
            lit, mode = state.lit(self._now_s), state.mode
        return View(lit, mode, len(state.pattern), state.done, self._best)

    def _glow(self) -> int:
        lit = 0
        for held in self._held.values():
            lit |= held
        for button, until_s in enumerate(self._glow_until_s):
            lit |= (until_s > self._now_s) << button
        return lit
